"""Predictions that any program wrote (.parquet, .csv, .npz), read in chunks, checked and never repaired.

Either all probabilities (a matrix `probs`, or columns p_0 .. p_K-1) or the three columns
confidence, prediction and target. Rows are counted from 0 in errors.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput, pick
from ova.files import naming
from ova.predictions.checks import check, check_agreement
from ova.predictions.columns import NONE, Predictions, whole
from ova.predictions.formats import FORMATS, NEEDED, Chunk
from ova.predictions.merging import merge

KEEP = 1 << 26  # cells of a matrix that may stay in memory


@dataclass(frozen=True)
class Reading:
    """How to take what a file says."""

    normalised: bool = True  # each row of probabilities sums to one
    outside: bool = False  # examples of none of the classes; a target in the file is not read


PLAIN = Reading()


def read_any(path: Path, how: Reading = PLAIN) -> Predictions:
    """All predictions of a file, in the order of their ids; errors name the file and the row."""
    chunks = pick(FORMATS, path.suffix.lower(), "file format")
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    with naming(path):
        return _collect(chunks(path, not how.outside), how)


def taken(chunk: Chunk, how: Reading = PLAIN) -> Predictions:
    """The predictions of columns in memory; errors name the row."""
    return _collect(iter([chunk]), how)


def _collect(chunks: Iterator[Chunk | Predictions], how: Reading) -> Predictions:
    parts: list[Predictions] = []
    names: set[Any] = set()
    first, cells = 0, 0
    for chunk in chunks:
        _add_names(chunk, names)
        part = _part(chunk, how, first, keep=cells <= KEEP)
        first += len(part)
        cells += len(part) * (part.classes or 1)
        parts.append(part)
    if cells > KEEP:
        parts = [replace(part, probs=None) for part in parts]
    if not first:
        raise BadInput("the file has no rows")
    return merge(parts)


def _add_names(chunk: Chunk | Predictions, names: set[Any]) -> None:
    """Refuse an example that comes again under its name; ids that are numbers are for `merge`."""
    if isinstance(chunk, Predictions) or "id" not in chunk or numbered(chunk):
        return
    mine = Counter(chunk["id"].tolist())
    again = next((name for name, times in mine.items() if times > 1 or name in names), None)
    if again is not None:
        raise BadInput(f"id {again!r} comes more than once")
    names.update(mine)


def _part(chunk: Chunk | Predictions, how: Reading, first: int, keep: bool) -> Predictions:
    """The rows of a chunk, ours (which somebody else may have written) or anybody's, all checked."""
    p = chunk if isinstance(chunk, Predictions) else _predictions(chunk, how, first, keep)
    check(p, first, NONE if how.outside else 0)
    if p is chunk:  # otherwise the columns were computed here
        check_agreement(p, first)
    if how.outside and not (p.target == NONE).all():
        none = np.full(len(p), NONE, np.int32)
        # These were about targets that do not count here.
        return replace(p, target=none, log_p=None, log_answers=None, squared_error=None)
    return p


def _predictions(chunk: Chunk, how: Reading, first: int, keep: bool) -> Predictions:
    """The columns of a chunk as they are; errors and absent ids count rows from `first`."""
    rows = len(chunk["probs"] if "probs" in chunk else chunk["confidence"])
    numbers = np.arange(first, first + rows)
    if how.outside:
        target = np.full(rows, NONE, np.int32)
    elif "target" in chunk:
        target = whole(chunk["target"], "target", np.dtype(np.int32), first)
    else:
        raise BadInput(f"there is no target; {NEEDED}")
    if "probs" in chunk:
        p = Predictions.from_probs(
            chunk["probs"], target, id=numbers, normalised=how.normalised, keep_probs=keep
        )
    else:
        c = chunk["confidence"]
        p = Predictions(
            id=numbers,
            target=target,
            prediction=whole(chunk["prediction"], "prediction", np.dtype(np.int32), first),
            confidence=c if c.dtype in (np.float32, np.float64) else c.astype(np.float64),
            classes=None,
            normalised=None,
        )
    if not numbered(chunk):
        return p
    return replace(p, id=whole(chunk["id"], "id", np.dtype(np.int64), first))


def numbered(chunk: Chunk) -> bool:
    """Whether ids are numbers; for names the row numbers serve."""
    return "id" in chunk and chunk["id"].dtype.kind in "biuf"
