"""SIGKILL at any moment, then the same command until it ends: the files are those of an undisturbed run.

Half of the kills strike after so much work of the processor; the others just before the n-th change
of the folder (a file opened for writing, renamed, removed ...), so that a seed says exactly which.
What a command has done before a kill it need not do again: the later kills of a chain come earlier.
"""

import json
import mmap
import os
import re
import shlex
import shutil
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from torture import forks
from torture.tally import Tally

ENDS = 3  # undisturbed attempts that a command has to come to its end
MOST = 4  # kills of one chain
QUICK = "--set epochs=2 --set batch_size=16"
JOBS = {
    "run, points": "run toy --only ova-dm --seeds 1 --set epochs=2 --set steps=9 --out out",
    "run, images": "run digits --only ova --seeds 1 --set epochs=2 --out out",
    "train, table": f"train table.csv {QUICK} --out out",
    "train, texts": f"train texts.csv --text sentence --label topic {QUICK} --out out",
    "train, images": f"train images {QUICK} --out out",
    "tune": "tune tiny --out out",
    "corrupt": "corrupt images --out out --types contrast,jpeg_compression --severities 1,3",
    "report": "report runs --output out/page.html --figures out",
}
WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate", "fcntl.flock"}
TIMES = ("started", "seconds", "resumed")  # of a manifest: what a kill may change


@dataclass(frozen=True)
class Whole:
    """An undisturbed run of a job."""

    content: dict[str, Any]
    changes: int
    work: float  # seconds of the processor


def undisturbed(kind: str, made: Path, folder: Path) -> Whole:
    """Run a job to its end, once."""
    shutil.copytree(made, folder)
    counter = mmap.mmap(-1, 8)  # shared with the fork
    ended = forks.ova(shlex.split(JOBS[kind]), folder, counting(folder, counter, 0))
    if ended.code != 0:
        raise RuntimeError(f"{kind}: the undisturbed command ends with {ended.code}\n{ended.said}")
    return Whole(content(folder / "out"), int.from_bytes(counter[:8], "little"), ended.work)


def counting(folder: Path, counter: mmap.mmap, last: int) -> Callable[[], None]:
    """What the fork does first: count changes below the folder, and die before the `last`."""

    def listen(event: str, told: tuple[Any, ...]) -> None:
        if event == "open":
            if not isinstance(told[2], int) or not told[2] & WRITE:
                return
        elif event not in CHANGES:
            return
        place = told[0]
        if not isinstance(place, int) and not os.path.abspath(os.fsdecode(place)).startswith(below):
            return
        count = int.from_bytes(counter[:8], "little") + 1
        counter[:8] = count.to_bytes(8, "little")
        if count == last:
            os.kill(os.getpid(), signal.SIGKILL)

    below = f"{folder.resolve()}/"
    return lambda: sys.addaudithook(listen)


def chain(kind: str, number: int, seed: int, made: Path, whole: Whole, tally: Tally) -> None:
    """Kill a job up to four times, let it end, and compare."""
    draw = Random(f"{seed} {kind} {number}")
    folder = made.parent / f"{kind.replace(', ', '-')}-{seed}-{number}"
    shutil.copytree(made, folder)
    killed: list[str] = []
    code = 1
    for earlier in range(1, 1 + draw.randint(1, MOST)):
        by_work = draw.random() < 0.5
        moment = draw.random() * whole.work / earlier if by_work else None
        last = 0 if by_work else draw.randint(1, max(whole.changes // earlier, 1))
        hook = counting(folder, mmap.mmap(-1, 8), last)
        kill = None if moment is None else forks.Kill(moment, mmap.mmap(-1, 1))
        ended = forks.ova(shlex.split(JOBS[kind]), folder, hook, kill=kill)
        if (code := ended.code) != -signal.SIGKILL:
            break
        killed.append(f"change {last}" if moment is None else f"{moment:.2f} s of work")
        tally.facts["kills"] += 1
    told = f"chain {number}, killed at {', '.join(killed) or 'no moment'}"
    for _ in range(ENDS):
        if code == 0:
            break
        ended = forks.ova(shlex.split(JOBS[kind]), folder)
        code = ended.code
    tally.memory = max(tally.memory, ended.memory)
    problem = f"it never ends, but with {code}" if code else differs(whole.content, folder / "out")
    if killed:
        tally.facts["chains"] += 1
        tally.facts["chains equal to an undisturbed one"] += not problem
    tally.note(f"kills: {kind}", told, problem, folder)


def differs(wanted: dict[str, Any], out: Path) -> str:
    """What the folder has too much or too little or otherwise, or nothing."""
    found = content(out)
    over, lost = sorted(found.keys() - wanted.keys()), sorted(wanted.keys() - found.keys())
    other = [name for name in sorted(wanted) if name in found and found[name] != wanted[name]]
    parts = {"left over": over, "lost": lost, "other content": other}
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts.items() if names)


def content(out: Path) -> dict[str, Any]:
    """What every file below a folder says, without times and the record of resumes."""
    files = sorted(path for path in out.rglob("*") if path.is_file())
    return {str(path.relative_to(out)): said(path) for path in files}


def said(path: Path) -> Any:
    """The bytes of a file, or what it says besides times."""
    data = path.read_bytes()
    if path.name == "manifest.json":
        return {k: v for k, v in json.loads(data).items() if k not in TIMES}
    if path.name == "log.jsonl":
        return re.sub(rb'"seconds": [^,}]*', b"", data)
    if path.name == "model.json":  # has the hash of the manifest, and its own
        held = json.loads(data)
        del held["sha256"], held["parts"]["manifest.json"]
        return held
    if path.suffix == ".db" or path.name == "report.html":
        return ""  # the rows of a search are in its history; the page of a model tells of resumes
    return data
