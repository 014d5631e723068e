"""Predictions that any program wrote (.parquet, .csv, .npz), read in chunks, checked and never repaired.

Either all probabilities (a matrix `probs`, or columns p_0 .. p_K-1) or the three columns
confidence, prediction and target. Rows are counted from 0 in errors.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ova.errors import BadInput, pick
from ova.predictions.columns import NONE, Predictions, check_labels, whole
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
    try:
        return _collect(chunks(path, not how.outside), how)
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from None


def _collect(chunks: Iterator[Chunk | Predictions], how: Reading) -> Predictions:
    parts: list[Predictions] = []
    first, cells = 0, 0
    for chunk in chunks:
        part = _part(chunk, how, first, keep=cells <= KEEP)
        first += len(part)
        cells += len(part) * (part.classes or 1)
        parts.append(part)
    if cells > KEEP:
        parts = [replace(part, probs=None) for part in parts]
    if not first:
        raise BadInput("the file has no rows")
    return merge(parts)


def _part(chunk: Chunk | Predictions, how: Reading, first: int, keep: bool) -> Predictions:
    """The rows of a chunk, ours (which somebody else may have written) or anybody's, all checked."""
    p = chunk if isinstance(chunk, Predictions) else _predictions(chunk, how, first, keep)
    numbers = np.arange(first, first + len(p))
    good = (p.confidence >= 0) & (p.confidence <= 1)
    if not good.all():
        row = int(np.argmin(good))
        rule = "is NaN" if np.isnan(p.confidence[row]) else "lies outside [0, 1]; is it a logit?"
        raise BadInput(f"row {numbers[row]}: confidence {p.confidence[row]:.6g} {rule}")
    check_labels(p.prediction, numbers, p.classes or 2**31, "prediction", 0)
    if not how.outside:
        check_labels(p.target, numbers, p.classes or 2**31, "target", 0)
    elif not (p.target == NONE).all():
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
    if "id" not in chunk:
        return p
    return replace(p, id=whole(chunk["id"], "id", np.dtype(np.int64), first))
