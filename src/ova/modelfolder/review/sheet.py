"""The sheet of a review: a row for each input, with columns that a person fills in, written and read."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from ova.errors import BadInput
from ova.files import write_beside
from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model
from ova.modelfolder.write import inert
from ova.predictions import NONE_LABEL
from ova.userdata.labels import label_of
from ova.userdata.rows import Frame

LABEL, GROUP, FOR_GROUP = "label", "group", "group_label"  # to fill in: the first and the last
TOLD = ("nearest_classes", "best_guess", "confidence", "score")
NONE_WORDS, LEAVE, NEW = ("none", NONE_LABEL), "leave", "new:"
NAMED = 5  # wrong words that a message names


@dataclass(frozen=True)
class Label:
    """What a row was found to be: a class, or none of them."""

    name: str  # empty: none of the classes


def ours(name: str, taken: Iterable[str]) -> str:
    """The name of a column of the sheet, beside those that the model looks at.

    >>> ours("group", ["x"]), ours("group", ["x", "group"])
    ('group', 'review_group')
    """
    return f"review_{name}" if name in taken else name


def write_sheet(
    path: Path, model: Model, cells: Mapping[str, Sequence[Any]], told: Mapping[str, Sequence[Any]]
) -> None:
    """Write the rows: what to fill in, what was told of each, and the input as the model reads it."""
    names = wanted(model)
    empty = [""] * len(told[GROUP])
    columns: dict[str, Sequence[Any]] = {ours(LABEL, names): empty, ours(GROUP, names): told[GROUP]}
    columns[ours(FOR_GROUP, names)] = empty
    columns |= {name: cells[name] for name in names}
    columns |= {ours(name, names): told[name] for name in TOLD}
    with (
        write_beside(path) as beside,
        beside.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([f"{v:.6g}" if isinstance(v, float) else inert(v) for v in row])


def filled_in(
    frame: Frame, model: Model, new: Sequence[str], label: str, source: object
) -> list[Label | None]:
    """What each row was found to be, None for one that is left.

    A row's own label counts before that of its group, which may stand in any row of the group.
    """
    names = wanted(model)
    cells = list(map(label_of, frame.column(label or ours(LABEL, names), source, "--label")))
    group, for_group = (frame.columns.get(ours(name, names)) for name in (GROUP, FOR_GROUP))
    if group is not None and for_group is not None:
        cells = spread(cells, [*map(label_of, group)], [*map(label_of, for_group)], source)
    said = [read(cell) for cell in cells]
    known = {*model.classes, *new, *(name for word, name in said if word == NEW)}
    wrong = {
        row: name for row, (word, name) in enumerate(said) if word == "class" and name not in known
    }
    words = {**dict.fromkeys(NONE_WORDS, "none"), LEAVE: LEAVE}
    odd = {row: name for row, name in wrong.items() if name.lower() not in words}
    if odd:
        raise BadInput(unknown(odd, known, source))
    if empty := [row for row, (word, name) in enumerate(said) if word == NEW and not name]:
        raise BadInput(f"{source}, row {empty[0] + 1}: {NEW!r} names no class; write 'new: NAME'")
    found: list[Label | None] = []
    for row, (word, name) in enumerate(said):
        if row in wrong:
            found.append(Label("") if words[name.lower()] == "none" else None)
        else:
            found.append(Label(name) if word else None)
    return found


def read(cell: str | None) -> tuple[str, str]:
    """What kind of word a label is, and the class that it names.

    >>> read("new: refund"), read("card"), read(None)
    (('new:', 'refund'), ('class', 'card'), ('', ''))
    """
    if cell is None:
        return "", ""
    if cell.lower().startswith(NEW):
        return NEW, cell[len(NEW) :].strip()
    return "class", cell


def spread(
    cells: Sequence[str | None],
    group: Sequence[str | None],
    for_group: Sequence[str | None],
    source: object,
) -> list[str | None]:
    """The labels of rows, where there is none that of the group."""
    said: dict[str, str] = {}
    for name, label in zip(group, for_group, strict=True):
        if label is None:
            continue
        if name is None:
            raise BadInput(f"{source}: {FOR_GROUP} says {label!r} in a row that is in no group")
        if said.setdefault(name, label) != label:
            raise BadInput(
                f"{source}: group {name} is called {said[name]!r} and {label!r}; say one of them "
                f"in {FOR_GROUP}, and what differs in {LABEL}"
            )
    return [
        cell if cell is not None or name is None else said.get(name)
        for cell, name in zip(cells, group, strict=True)
    ]


def unknown(wrong: Mapping[int, str], known: set[str], source: object) -> str:
    """The words that name nothing, what is near to the first, and what may be written."""
    several = list(dict.fromkeys(wrong.values()))
    first = "; ".join(
        f"row {row + 1}: {name!r}" for row, name in list(wrong.items())[:NAMED]
    ) + "; ..." * (len(wrong) > NAMED)
    near = get_close_matches(several[0], known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return (
        f"{source}: {len(several)} words are no class of the model ({first}){hint}; write one of its "
        f"classes, 'new: {several[0]}' for a new one, '{NONE_WORDS[0]}', or '{LEAVE}'"
    )
