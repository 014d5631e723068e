"""Machines that refuse: a full disk, folders without permission, too little memory. A sentence, and nothing is lost."""

import os
import resource
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random

from torture import forks
from torture.inputs import contents
from torture.tally import Tally

NOBODY = 65534
MB = 1 << 20
LINES = {
    "run": "run toy --only ova-dm --seeds 1 --set epochs=2 --set steps=9 --out {out}",
    "train": "train table.csv --set epochs=1 --out {out}/model",
    "tune": "tune tiny --out {out}",
    "corrupt": "corrupt images --out {out} --types contrast --severities 1",
    "report": "report runs --output {out}/x.html",
    "evaluate": "evaluate test.csv --measurements {out}/x.jsonl --output {out}/x.html",
    "calibrate": "calibrate test.csv --fit held.csv --out {out}/x.parquet --json {out}/x.json",
    "predict": "predict model rows.csv --out {out}/x.csv",
    "score": "score train-dump.npz inside-dump.npz --outside out-dump.npz --json {out}/x.json",
    "export": "export model --onnx {out}/x.onnx",
}
NEEDS = ["table.csv", "images", "runs", "test.csv", "held.csv", "model", "rows.csv"]
NEEDS += [f"{name}-dump.npz" for name in ("train", "inside", "out")]


def small_files(draw: Random, _: Path) -> tuple[str, Callable[[], None]]:
    """No file may be longer than some kilobytes, as where a quota is used up."""
    import signal

    size = int(2 ** draw.uniform(0, 18))

    def first() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return f"files of at most {size} bytes", first


def little_memory(draw: Random, _: Path) -> tuple[str, Callable[[], None]]:
    """So many megabytes more than the program itself takes."""
    more = int(2 ** draw.uniform(0, 9))

    def first() -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + more * MB
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

    return f"{more} MB of memory", first


def as_nobody() -> None:
    """Give up the rights of root, whom no permission binds."""
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)


def no_permission(draw: Random, folder: Path) -> tuple[str, Callable[[], None]]:
    """A folder of the results, or an input, that may not be written or read."""
    how = draw.choice(["read-only", "closed", "inputs closed"])
    for path in [folder, *folder.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    if how == "inputs closed":
        (folder / "out").chmod(0o777)
        for path in list(folder.rglob("*")):
            if path.is_file():
                path.chmod(0)
    else:
        (folder / "out").chmod(0o555 if how == "read-only" else 0)
    return how, as_nobody


def full_disk(draw: Random, folder: Path) -> tuple[str, Callable[[], None]]:
    """A file system of some kilobytes for the results."""
    size = int(2 ** draw.uniform(2, 9))
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}k", "tmpfs", str(folder / "out")], check=True
    )
    return f"a disk of {size} kB", lambda: None


KINDS = {
    "small files": small_files,
    "little memory": little_memory,
    "no permission": no_permission,
    "full disk": full_disk,
}


def can_mount(folder: Path) -> bool:
    """Whether this process may make a small disk."""
    (place := folder / "disk").mkdir()
    line = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(place)]
    if not shutil.which("mount"):
        return False
    if subprocess.run(line, capture_output=True, check=False).returncode:
        return False
    subprocess.run(["umount", str(place)], check=True)
    return True


@contextmanager
def place(made: Path, name: str) -> Iterator[Path]:
    """A folder with every input and an empty place for results, which is no disk of its own after."""
    folder = made.parent / name
    folder.mkdir()
    for each in NEEDS:
        source = made / each
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / each)
    (folder / "out").mkdir()
    try:
        yield folder
    finally:
        if os.path.ismount(folder / "out"):
            subprocess.run(["umount", str(folder / "out")], check=True)
        if folder.exists():
            for path in [folder, *folder.rglob("*")]:
                with suppress(OSError):
                    path.chmod(0o755)


def case(number: int, seed: int, made: Path, known: list[str], tally: Tally) -> None:
    """One command on one machine; where it is a matter of room, the same command then ends well."""
    draw = Random(f"{seed} hostile {number}")
    kind, command = draw.choice(known), draw.choice(list(LINES))
    line = shlex.split(LINES[command].format(out="out"))
    with place(made, f"hostile-{seed}-{number}") as folder:
        before = contents(folder)
        how, first = KINDS[kind](draw, folder)
        ended = forks.ova(line, folder, first)
        after = {name: data for name, data in contents(folder).items() if name in before}
        problem = ended.wrong or ("an input was changed" if after != before else "")
        if not problem and "failure.txt" in ended.said:
            problem = "a failure that is no sentence"
        left = [path.name for path in folder.rglob("*.part")]
        problem = problem or (f"left over: {', '.join(left)}" if left else "")
        told = f"case {number}, {how}, `ova {' '.join(line)}`, exit code {ended.code}"
        if os.path.ismount(folder / "out"):
            subprocess.run(["umount", str(folder / "out")], check=True)
        tally.facts["hostile machines: refused"] += ended.code != 0
        tally.note(f"hostile: {kind}", told, problem, folder)
