"""Files that are either whole or absent: written beside their place, then renamed into it."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def write_beside(path: Path, durable: bool = True) -> Iterator[Path]:
    """A temporary neighbour of `path` to write to; it takes the place of `path` only on success.

    `durable` waits for the disk, so that even a power failure leaves one or the other whole.
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
    """Write text whole or not at all."""
    with write_beside(path, durable) as beside:
        beside.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any, indent: int | None = 2) -> None:
    """Write JSON whole or not at all; NaN is refused because JSON has none."""
    write_text(path, json.dumps(value, indent=indent, allow_nan=False, ensure_ascii=False) + "\n")


def write_lines(path: Path, rows: Iterable[Any], durable: bool = True) -> None:
    """Write one JSON value per line, whole or not at all."""
    lines = (json.dumps(row, allow_nan=False, ensure_ascii=False) + "\n" for row in rows)
    write_text(path, "".join(lines), durable)


def read_lines(path: Path) -> list[Any]:
    """The JSON values of a file that has one per line."""
    # Not splitlines(): it also splits at characters that JSON leaves inside strings.
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def sha256(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
