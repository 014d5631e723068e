"""Damaged and hostile files of every kind, each to the command that reads it.

A command may refuse with a sentence or do its work; it may not end in a traceback, hang, take
gigabytes, change a file that it reads, leave a part of one behind, or take what must be refused.
"""

import hashlib
import shlex
import shutil
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from random import Random

from torture import forks, oracle
from torture.mutations import ACCEPT, REFUSE
from torture.tally import READ, REFUSED, TAKEN, Tally
from torture.targets import Target

READERS = ("evaluate", "calibrate", "score", "predict", "data")
LONGEST = 60.0  # seconds of a command that takes one or two
MOST = 3e9  # bytes of memory
Run = Callable[..., forks.Ended]  # a command line in a folder, within so many seconds


def part(known: Sequence[Target], readers: bool) -> list[Target]:
    """Those whose command only reads and answers, or the others, which work with what they read."""
    return [t for t in known if (t.line.split()[0] in READERS) == readers]


def one(number: int, seed: int, made_in: Path, known: Sequence[Target], run: Run) -> Tally:
    """Spoil one file, run its command, and look what came of it."""
    tally, draw = Tally(), Random(f"{seed} {number}")
    target, folder = drawn(draw, known), place(made_in, seed, number, run.__name__)
    folder.mkdir()
    for name in {target.file.split("/")[0], *target.needs} - {""}:
        copy(made_in / name, folder / name)
    spoiled = folder / target.file
    how, must = draw.choice(target.spoils)(draw, spoiled)
    must = must or oracle.verdict(spoiled, made_in / target.file)
    before, seen = contents(folder), digest(target, how, spoiled)
    ended = run(shlex.split(target.line), folder, seconds=LONGEST)
    tally.memory = ended.memory
    if must == ACCEPT:
        tally.facts["sound inputs taken"] += ended.code == 0
    else:
        wrongly = TAKEN if must == REFUSE else READ
        tally.bad[seen] = wrongly if ended.code == 0 else REFUSED
    problem = ended.wrong or unfit(ended, must) or harmed(folder, before)
    note(
        tally, target, f"case {number}, `ova {target.line}`, {target.file}: {how}", problem, folder
    )
    return tally


def note(tally: Tally, target: Target, case: str, problem: str, folder: Path) -> None:
    """Count a case among those of its command and kind of file."""
    kind = f"inputs: {target.line.split()[0]} of {Path(target.file).suffix or 'pickle'}"
    tally.note(kind, case, problem, folder)


def drawn(draw: Random, known: Sequence[Target]) -> Target:
    """The target of a case."""
    return draw.choices(known, [t.weight for t in known])[0]


def place(made_in: Path, seed: int, number: int, part: str) -> Path:
    """The folder of a case."""
    return made_in.parent / f"{part}-{seed}-{number}"


def digest(target: Target, how: str, spoiled: Path) -> bytes:
    """What tells a bad input from others: two that are the same count once."""
    held = spoiled.read_bytes() if spoiled.is_file() else how.encode()
    told = f"{target.line}\0{target.file}\0".encode()
    return hashlib.sha256(told + held).digest()[:12]


def cases(
    numbers: Iterable[int], seed: int, made_in: Path, known: Sequence[Target], tally: Tally
) -> None:
    """Commands that only read: many in one fork, each with its own end and its own memory."""
    work = partial(one, seed=seed, made_in=made_in, known=known, run=forks.inside)
    for number, came in forks.one_by_one(numbers, work):
        if isinstance(came, Tally):
            tally.add(came)
            continue
        target = drawn(Random(f"{seed} {number}"), known)
        ended = forks.Ended(came, "", LONGEST, 0)
        problem = ended.wrong or f"ends the whole process with {came}"
        note(
            tally,
            target,
            f"case {number}, `ova {target.line}`",
            problem,
            place(made_in, seed, number, forks.inside.__name__),
        )


def copy(source: Path, place: Path) -> None:
    """A file or a folder of the sound ones."""
    place.parent.mkdir(parents=True, exist_ok=True)
    (partial(shutil.copytree, dirs_exist_ok=True) if source.is_dir() else shutil.copy)(
        source, place
    )


def unfit(ended: forks.Ended, must: str) -> str:
    """Whether what must be refused was taken, or the other way round."""
    if "see " in ended.said and "failure.txt" in ended.said:
        return "a failure that is no sentence"
    if ended.memory > MOST:
        return f"takes {ended.memory / 1e9:.1f} GB"
    if must == REFUSE and ended.code != 2 and not refused_one(ended):
        return f"taken with exit code {ended.code}, must be refused"
    if must == ACCEPT and ended.code != 0:
        return f"refused, must be taken: {ended.said[-200:]}"
    return ""


def refused_one(ended: forks.Ended) -> bool:
    """`ova run` goes on to its next recipe after one that it refuses, and ends with 1."""
    return ended.code == 1 and "runs failed" in ended.said


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != forks.SAID)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def harmed(folder: Path, before: dict[str, bytes]) -> str:
    """Inputs that are no longer what they were, parts that were left over, files in odd places."""
    after = contents(folder)
    changed = [name for name, data in before.items() if after.get(name) != data]
    if changed:
        return f"changed inputs: {', '.join(changed)}"
    new = sorted(after.keys() - before.keys())
    parts = [name for name in new if name.endswith((".part", ".lock"))]
    if parts:
        return f"left over: {', '.join(parts)}"
    odd = [n for n in new if not n.startswith(("out/", "out.html", "x."))]
    odd += ["a folder made by a pickle"] if list(folder.rglob("run-by-a-pickle")) else []
    return f"written unasked: {', '.join(odd)}" if odd else ""
