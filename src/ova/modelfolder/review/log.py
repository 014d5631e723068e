"""What a model was asked: inputs as `ova predict` reads them, or the predictions that it wrote of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.modelfolder.answer import pictures
from ova.modelfolder.asking import wanted
from ova.modelfolder.folder import Model
from ova.modelfolder.review import served
from ova.predictions import NONE_LABEL
from ova.predictions.columns import Array
from ova.userdata.rows import FILE, Frame

INPUT, LABEL, GUESS, SCORE = "input", "label", "best_guess", "score"  # of `ova predict`
SAID = (INPUT, LABEL, SCORE)  # a file with all of these is one of predictions
GUESSES = (GUESS, "guess")
FORMULA = ("'=", "'+", "'-", "'@", "'\t", "'\r")  # what `ova predict` writes into a CSV for "="
DIGITS = 1e-4  # of a score: a file has six digits, and another batch other last ones
ODD = 0.01  # share of the rows whose score may be another one


@dataclass(frozen=True)
class Piece:
    """Some rows of a log: the inputs, and what was said of them where that is known."""

    frame: Frame
    labels: Sequence[Any] | None = None
    scores: Array | None = None
    others: int = 0  # rows that another model answered, left out here


def pieces(model: Model, log: Sequence[str], images: Path | None = None) -> Iterator[Piece]:
    """All rows of the logs, in order; `images` has those that a server's log names."""
    if images is not None and model.preparation.column != FILE:
        raise BadInput(f"--images {images}: this model was trained on a {model.kind}; leave it out")
    known = {} if images is None else served.known_images(images)
    for source in log:
        path = Path(source)
        picture = model.preparation.column == FILE and (path.is_dir() or not listed(path))
        found = (
            pictures([source])
            if picture
            else served.logged(path, model.preparation.column or "text")
        )
        first = next(found, None)
        if first is None:
            raise BadInput(f"{source}: there are no rows in it")
        read = reader(model, first, source, known)
        yield from (read(frame) for frame in chain([first], found))


def listed(path: Path) -> bool:
    """Whether a file lists inputs rather than being one."""
    return any(path.name.lower().endswith(e) for e in (".csv", ".tsv", ".jsonl", ".parquet"))


def reader(
    model: Model, first: Frame, source: str, images: Mapping[str, str]
) -> Callable[[Frame], Piece]:
    """How a log is read, by the columns of its first rows."""
    names, have = wanted(model), first.columns
    if not all(name in have for name in SAID) or INPUT in names:
        for name in names:
            first.column(name, source)
        return lambda frame: Piece(of_columns(frame, {name: name for name in names}))
    served.check_inputs(model, first, bool(images), source)
    if model.preparation.column:
        taken = {model.preparation.column: INPUT}
    else:
        taken = {name: served.given(name, have) for name in names}
        lacking = [name for name, given in taken.items() if given not in have]
        if lacking:
            raise BadInput(
                f"{source}: predictions on a table call their inputs by number; give the table itself, "
                f"or predict with --keep for each column (there is no {lacking[0]!r})"
            )
    inert = source.lower().endswith((".csv", ".tsv"))

    def read(frame: Frame) -> Piece:
        its = served.its_rows(model, frame)
        others = len(frame) - len(its)
        frame = rows_of(frame, its) if others else frame
        check_classes(model, frame, source)
        scores = np.array([number(cell) for cell in frame.columns[SCORE]])
        inputs = of_columns(frame, taken, inert=inert)
        if images:
            names = inputs.columns[FILE]
            inputs = Frame({FILE: [images.get(str(name), str(name)) for name in names]}, frame.bad)
        return Piece(inputs, frame.columns[LABEL], scores, others)

    return read


def rows_of(frame: Frame, rows: Sequence[int]) -> Frame:
    """Some rows of a frame."""
    columns = {name: [column[row] for row in rows] for name, column in frame.columns.items()}
    places = enumerate(rows)
    return Frame(columns, {i: frame.bad[row] for i, row in places if row in frame.bad})


def of_columns(frame: Frame, taken: Mapping[str, str], *, inert: bool = False) -> Frame:
    """The columns that the model looks at, under its names for them."""
    found = {name: frame.columns[given] for name, given in taken.items()}
    if inert:
        found = {name: [*map(alive, column)] for name, column in found.items()}
    return Frame(found, frame.bad)


def alive(cell: Any) -> Any:
    """A cell without the mark that keeps spreadsheets from running it.

    >>> alive("'=1+1"), alive("'tis")
    ('=1+1', "'tis")
    """
    return cell[1:] if isinstance(cell, str) and cell.startswith(FORMULA) else cell


def number(cell: Any) -> float:
    """A score as it was written; NaN where there is none."""
    try:
        return float(cell)
    except (TypeError, ValueError):
        return np.nan


def refused(labels: Sequence[Any]) -> Array:
    """Which rows got no answer: "none of the above", or nothing, as a server says it."""
    return np.array([label in (None, "", NONE_LABEL) for label in labels], bool)


def check_classes(model: Model, frame: Frame, source: str) -> None:
    """Refuse predictions with classes that the model does not have."""
    columns = [frame.columns[name] for name in (LABEL, *GUESSES) if name in frame.columns]
    strange = {str(cell) for cell in chain(*columns)} - {*model.classes, NONE_LABEL, "", "None"}
    if strange:
        raise BadInput(
            f"{source} is a log of another model: it answers {min(strange)!r}, which is no class of "
            f"this one ({', '.join(map(repr, model.classes[:5]))}, ...)"
        )


def check_scores(said: Array, found: Array) -> None:
    """Refuse predictions whose scores are not those of the model."""
    both = np.isfinite(said) & np.isfinite(found)
    far = both & (np.abs(said - found) > DIGITS * np.maximum(1, np.abs(found)))
    if far.sum() > ODD * len(said):
        raise BadInput(
            f"the log is one of another model: {far.sum()} of its {len(said)} scores are not those of "
            "this model; give the model that wrote it, or the inputs themselves"
        )
