"""The label and the group of each row, and the classes that follow from them."""

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ova.data.cells import as_number
from ova.data.folders import scan
from ova.errors import BadInput
from ova.files import sha256
from ova.predictions import NONE, NONE_LABEL
from ova.userdata.request import Request
from ova.userdata.rows import FILE, Frame, whole

LABEL = "label"  # the column of labels, unless the user names another
NAMED = 5  # labels that a message names


def labelled(path: Path, request: Request) -> tuple[Frame, Sequence[str | None], Mapping[str, str]]:
    """Rows, the label of each (None where there is none) and the SHA-256 of where they come from.

    A folder has images with the names of their class folders; of a file a column is the labels.
    """
    if path.is_dir():
        held = scan(path)
        names = [held.name(row) for row in range(len(held))]
        return Frame({FILE: names}), [held.classes[k] for k in held.y], {path.name: held.digest}
    frame = whole(path)
    label = request.label or LABEL
    cells = frame.column(label, path, "--label")
    if label == request.text:
        raise BadInput(f"column {label!r} cannot be both the text and the label")
    rest = {name: column for name, column in frame.columns.items() if name != label}
    return Frame(rest, frame.bad), [*map(label_of, cells)], {path.name: sha256(path)}


def label_of(cell: Any) -> str | None:
    r"""A label as text: numbers as they are written, nothing for an empty cell.

    >>> label_of(3.0), label_of(' a, "b" '), label_of(""), label_of(float("nan"))
    ('3', 'a, "b"', None, None)
    """
    if cell is None or cell != cell or not str(cell).strip():  # noqa: PLR0124  NaN
        return None
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def groups_of(path: Path, frame: Frame, request: Request) -> list[str | None]:
    """The group of each row: its cell in a column, or what a pattern finds in an image's name."""
    if not path.is_dir():
        return [*map(label_of, frame.column(request.group, path, "--group"))]
    try:
        pattern = re.compile(request.group)
    except re.error as error:
        raise BadInput(
            f"--group is a regular expression for the names of images, which {request.group!r} is "
            f"not: {error}"
        ) from None
    found = (pattern.search(Path(name).name) for name in frame.columns[FILE])
    return [(match and match.group()) or None for match in found]


def ungrouped(groups: Sequence[Hashable]) -> dict[int, str]:
    """Rows without a group."""
    return {row: "no group" for row, group in enumerate(groups) if group is None}


def unlabelled(labels: Sequence[str | None]) -> dict[int, str]:
    """Rows without a label."""
    return {row: "no label" for row, label in enumerate(labels) if label is None}


def classes_of(request: Request, found: Sequence[str]) -> tuple[str, ...]:
    """The classes in order of their names; numbers in order of their values."""
    path, none = request.data, request.none.strip()
    labels = [label for label in found if label != none]
    counts = Counter(labels)
    if none and len(labels) == len(found):
        have = [*map(repr, sorted(counts)[:NAMED]), *["..."] * (len(counts) > NAMED)]
        raise BadInput(
            f"{path}: no row is labelled {none!r} (--none); the labels are {', '.join(have)}"
        )
    if len(counts) < 2:
        only = f"all {len(labels)} rows are {labels[0]!r}" if labels else "no row is left"
        raise BadInput(f"{path}: at least two classes are needed, {only}")
    if NONE_LABEL in counts:
        raise BadInput(
            f"{path}: a class is called {NONE_LABEL!r}, which is what a refusal is called; if its rows "
            f"are examples of no class, say --none {NONE_LABEL!r}"
        )
    if len(counts) > len(labels) / 2:
        raise BadInput(
            f"{path}: {len(counts)} classes in {len(labels)} rows; the label has to be one of few, "
            "is it the right column?"
        )
    numbers = [as_number(name) for name in counts]
    if all(number == number for number in numbers):  # noqa: PLR0124  no NaN
        return tuple(name for _, name in sorted(zip(numbers, counts, strict=True)))
    return tuple(sorted(counts))


def trained(request: Request, classes: Sequence[str], seen: set[str | None]) -> tuple[str, ...]:
    """The classes that have a row to train on: what the model can answer with."""
    known = tuple(name for name in classes if name in seen)
    if len(known) < 2:
        raise BadInput(
            f"{request.data}: at least two classes are needed, but the rows to train on have "
            f"{len(known)}; more rows, or another --seed, would do"
        )
    return known


def targets(labels: Sequence[str | None], classes: Sequence[str]) -> Tensor:
    """The number of each label among the classes; NONE for any other."""
    number = {name: k for k, name in enumerate(classes)}
    return torch.tensor([number.get(str(label), NONE) for label in labels])
