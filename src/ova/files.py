"""The machine: atomic writes, JSON that names its file when damaged, and how many cores there are."""

import hashlib
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from ova.errors import BadInput

Row = dict[str, Any]


@contextmanager
def write_beside(path: Path, durable: bool = True) -> Iterator[Path]:
    """A temporary neighbour of `path` to write to; it takes the place of `path` only on success.

    `durable` waits for the disk, so that even a power failure leaves the old file or the new one.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield beside
        if durable:
            with beside.open("rb+") as file:
                os.fsync(file.fileno())  # a rename must not reach the disk before the bytes do
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_text(path: Path, text: str, durable: bool = True) -> None:
    """Write text atomically."""
    with write_beside(path, durable) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write JSON atomically; NaN is refused because JSON has none."""
    write_text(path, json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False) + "\n")


def write_lines(path: Path, rows: Iterable[Any], durable: bool = True) -> None:
    """Write one JSON value per line, atomically."""
    lines = (json.dumps(row, allow_nan=False, ensure_ascii=False) + "\n" for row in rows)
    write_text(path, "".join(lines), durable)


def read_json(path: Path) -> Any:
    """The JSON value of a file."""
    return parsed(read_text(path), f"{path}")


def read_object(path: Path) -> Row:
    """The JSON object of a file."""
    return checked(read_json(path), (), f"{path}")


def read_lines(path: Path, needed: Sequence[str] = ()) -> list[Row]:
    """The JSON objects of a file that has one per line, each with the needed keys."""
    # Not splitlines(): it also splits at characters that JSON leaves inside strings.
    lines = enumerate(read_text(path).split("\n"), 1)
    return [
        checked(parsed(line, f"{path}, line {number}"), needed, f"{path}, line {number}")
        for number, line in lines
        if line.strip()
    ]


def read_text(path: Path) -> str:
    """The text of a file in UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path} is damaged: {error}") from None


def parsed(text: str, where: str) -> Any:
    """The JSON value of a text; one that is none is named and left as it is."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"{where} is damaged, it is not JSON ({error}); it was left untouched. "
            "Move it away to compute it again."
        ) from None


def checked(value: Any, needed: Sequence[str], where: str) -> Row:
    """The value, if it is a JSON object with the needed keys."""
    if not isinstance(value, dict) or any(key not in value for key in needed):
        keys = f" with {', '.join(needed)}" if needed else ""
        raise BadInput(f"{where} should be a JSON object{keys}")
    return value


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def cores() -> int:
    """How many cores this process may use, at least one.

    Those it may run on, where the system says it (macOS and Windows do not), and no more than its
    container may keep busy.
    """
    known = hasattr(os, "sched_getaffinity")
    here = len(os.sched_getaffinity(0)) if known else os.cpu_count() or 1
    return math.ceil(min(here, container_limit()))


@cache
def container_limit(root: Path = Path("/")) -> float:
    """How many cores the control groups (cgroups) of this process allow; infinite without a limit.

    A group is limited by every group above it. A container may see its own group as the root and
    yet be told the name that the host knows, so groups that are not there are passed over.
    """
    limits = [math.inf]
    for line in system_text(root / "proc/self/cgroup").splitlines():
        _, controllers, name = line.split(":", 2)
        if not controllers:  # version 2 has one tree
            top, names = root / "sys/fs/cgroup", ["cpu.max"]
        elif "cpu" in controllers.split(","):
            top, names = root / "sys/fs/cgroup/cpu", ["cpu.cfs_quota_us", "cpu.cfs_period_us"]
        else:
            continue
        group = top / name.strip("/")
        for folder in (group, *group.parents):
            numbers = " ".join(system_text(folder / name) for name in names).split()
            if folder.is_relative_to(top) and numbers and numbers[0] not in ("max", "-1"):
                quota, period = map(int, numbers)  # microseconds of work in so many of the clock
                limits.append(quota / period)
    return min(limits)


def system_text(path: Path) -> str:
    """What the system says in one of its files; nothing where there is no such file."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""
