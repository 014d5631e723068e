"""Predictions that any program wrote, in files read in chunks, checked and never repaired.

Either all probabilities (a matrix `probs`, or columns p_0 .. p_K-1, or proba_<class>) or the three
columns confidence, prediction and target. Rows are counted from 0 in errors.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import log_expit, log_softmax

from ova.errors import BadInput, pick
from ova.files import naming
from ova.predictions.checks import check, check_agreement
from ova.predictions.columns import NONE, Predictions, whole
from ova.predictions.formats import FORMATS, NEEDED, Chunk, Wanted
from ova.predictions.formats.wanted import silent
from ova.predictions.labelled import by_number, check_said
from ova.predictions.lone import of_two
from ova.predictions.merging import merge

KEEP = 1 << 26  # cells of a matrix that may stay in memory


@dataclass(frozen=True)
class Reading:
    """How to take what a file says."""

    normalised: bool = True  # each row of probabilities sums to one
    outside: bool = False  # examples of none of the classes; a target in the file is not read
    columns: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # what the user said of them
    logits: str = ""  # softmax or sigmoid, where logits are to be read
    tell: Callable[[str], None] = silent  # hears what was guessed

    @property
    def wanted(self) -> Wanted:
        """The same, as the readers of files take it."""
        return Wanted(not self.outside, self.normalised, self.columns, self.logits, self.tell)


PLAIN = Reading()


def read_any(path: Path, how: Reading = PLAIN) -> Predictions:
    """All predictions of a file, in the order of their ids; errors name the file and the row.

    A pattern, `part-*.csv`, stands for its files, one after the other by name.
    """
    chunks = pick(FORMATS, path.suffix.lower(), "file format")
    files = meant(path)
    if not files:
        raise BadInput(f"there is no file {path}")
    wanted = replace(how.wanted, tell=lambda told: how.tell(f"{path.name}: {told}"))
    with naming(path):
        return _collect(chain.from_iterable(chunks(file, wanted) for file in files), how)


def meant(path: Path) -> list[Path]:
    """The file of a name, or those of a pattern by their names; none if there is none."""
    if path.is_file():
        return [path]
    if not any(mark in path.name for mark in "*?["):
        return []
    return sorted(each for each in path.parent.glob(path.name) if each.is_file())


def taken(chunk: Chunk, how: Reading = PLAIN) -> Predictions:
    """The predictions of columns in memory; errors name the row."""
    return _collect(iter([chunk]), how)


def _collect(chunks: Iterator[Chunk | Predictions], how: Reading) -> Predictions:
    parts: list[Predictions] = []
    names: set[Any] = set()
    codes: dict[str, int] = {}
    first, cells = 0, 0
    for chunk in chunks:
        _add_names(chunk, names)
        numbered_chunk = (
            chunk
            if isinstance(chunk, Predictions)
            else by_number(of_two(chunk, how, first, codes), how, first, codes)
        )
        part = _part(numbered_chunk, how, first, keep=cells <= KEEP)
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
    rows = len(next(chunk[name] for name in ("probs", "logits", "confidence") if name in chunk))
    numbers = np.arange(first, first + rows)
    if how.outside:
        target = np.full(rows, NONE, np.int32)
    elif "target" in chunk:
        target = whole(chunk["target"], "target", np.dtype(np.int32), first)
    else:
        raise BadInput(f"there is no target; {NEEDED}")
    if "logits" in chunk:
        softmax = how.logits == "softmax"
        z = np.asarray(chunk["logits"], np.float64)
        log_p = log_softmax(z, axis=1) if softmax else log_expit(z)
        p = Predictions.from_logits(
            z, log_p, target, id=numbers, normalised=softmax, keep_probs=keep
        )
    elif "probs" in chunk:
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
    if "prediction" in chunk and "classes" in chunk:
        check_said(p, chunk["prediction"], chunk["classes"], first)
    if not numbered(chunk):
        return p
    return replace(p, id=whole(chunk["id"], "id", np.dtype(np.int64), first))


def numbered(chunk: Chunk) -> bool:
    """Whether ids are numbers; for names the row numbers serve."""
    return "id" in chunk and chunk["id"].dtype.kind in "biuf"
