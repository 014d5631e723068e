"""The log of a server as rows for a review: nested inputs made flat, images found by name or by hash."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from ova.errors import BadInput
from ova.files import decoded, reading
from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model, digest
from ova.modelfolder.log import HASHED
from ova.modelfolder.server.log import COLUMNS
from ova.userdata.rows import CHUNK, FILE, Frame, chunks, images_below, objects

INPUT, MODEL, SHA = "input", "model", "sha256:"


def of_server(columns: Mapping[str, Any]) -> bool:
    """Whether a server wrote rows with these columns."""
    return all(name in columns for name in COLUMNS)


def its_rows(model: Model, frame: Frame) -> list[int]:
    """The rows that this model answered; in other logs, all."""
    if not of_server(frame.columns):
        return [*range(len(frame))]
    name = digest(model.facts)[:HASHED]
    return [row for row, its in enumerate(frame.columns[MODEL]) if its in (name, None)]


def given(name: str, have: Mapping[str, Any]) -> str:
    """What a column of the input is called in a log with these columns.

    >>> given("time", {"time": [], "time (given)": []}), given("size", {"size": []})
    ('time (given)', 'size')
    """
    other = f"{name} (given)"
    return other if other in have else name


def logged(path: Path, column: str) -> Iterator[Frame]:
    """The rows of a log; JSON lines whose `input` is an object have its parts as columns."""
    if path.suffix.lower() != ".jsonl" or not path.is_file():
        yield from chunks(path, column)
        return
    with (
        reading(path, "a whole file of text"),
        path.open(encoding="utf-8", errors="surrogateescape", newline="\n") as file,
    ):
        yield from objects(map(flat, file), str(path), CHUNK)


def flat(line: str) -> str:
    """A line of a log with the parts of its input beside what was said of it.

    >>> flat('{"input": {"size": 1, "score": 2}, "score": 0.5}')
    '{"input": "", "score": 0.5, "size": 1, "score (given)": 2}'
    """
    try:
        row = decoded(line) if '"input": {' in line or '"input":{' in line else None
    except (ValueError, RecursionError):
        return line  # who reads it says what is wrong
    if not isinstance(row, dict) or not isinstance(row.get(INPUT), dict):
        return line
    cells = {
        (f"{name} (given)" if name in row else name): cell for name, cell in row[INPUT].items()
    }
    return json.dumps(row | {INPUT: ""} | cells)


def check_inputs(model: Model, first: Frame, images: bool, source: str) -> None:
    """Refuse a log that has only the hashes of its inputs, where these are not given beside it."""
    hashed = all(str(cell).startswith(SHA) for cell in first.columns[INPUT])
    if not hashed or not of_server(first.columns):
        return
    if model.preparation.column == FILE and not images:
        raise BadInput(
            f"{source} has the SHA-256 of its images alone; --images FOLDER says where they are"
        )
    cells = all(given(name, first.columns) in first.columns for name in wanted(model))
    if model.preparation.column != FILE and not cells:
        raise BadInput(
            f"{source} has the SHA-256 of its inputs alone (--log-hash); review the inputs themselves"
        )


def known_images(folder: Path) -> dict[str, str]:
    """All images below a folder, by their hashes, their paths in it, and their names where no two have one."""
    files, found = images_below(folder), dict[str, str]()
    names = Counter(Path(file).name for file in files)
    for file in files:
        found[SHA + sha256(Path(file).read_bytes()).hexdigest()] = file
        found[Path(file).relative_to(folder).as_posix()] = file
        if names[name := Path(file).name] == 1:
            found.setdefault(name, file)
    return found
