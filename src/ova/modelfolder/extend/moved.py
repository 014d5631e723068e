"""What a model says before and after its classes changed, of rows that neither was fitted on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import nan
from typing import Any

import numpy as np

from ova.modelfolder.class_table import share
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import Predictions
from ova.predictions.columns import Array

ALL = "all of these"
SHOWN = 20  # classes that are printed: those that moved most


@dataclass(frozen=True)
class Answered:
    """How many of some rows are answered, and how many of these rightly."""

    answered: float
    right: float

    @staticmethod
    def of(answered: Array, right: Array) -> "Answered":
        """Counted; NaN is the share of nothing."""
        n, kept = len(answered), int(answered.sum())
        good = int((answered & right).sum())
        return Answered(kept / n if n else nan, good / kept if kept else nan)

    def words(self) -> str:
        """Both shares."""
        return f"{share(self.answered)} answered, {share(self.right)} of them right"


@dataclass(frozen=True)
class Moved:
    """Some rows before and after; `before` is None for classes that were not there."""

    name: str
    n: int
    before: Answered
    after: Answered

    def to_json(self) -> dict[str, Any]:
        """Plain values, for the history of a model; JSON has no NaN."""
        row = asdict(self)
        for when in ("before", "after"):
            row[when] = {k: None if v != v else round(v, 6) for k, v in row[when].items()}  # noqa: PLR0124
        return row


@dataclass(frozen=True, eq=False)
class Said:
    """What one model says of rows: the class, by name, and whether it answers."""

    names: Array
    answered: Array

    @staticmethod
    def of(p: Predictions, threshold: Threshold | Thresholds, classes: Sequence[str]) -> "Said":
        """From predictions whose confidence is the score that decides."""
        names = np.array(classes, dtype=object)[p.prediction]
        return Said(names, threshold.answers(p.confidence, p.prediction))


def compared(target: Array, before: Said, after: Said, name: str, rows: Array) -> Moved:
    """The chosen rows, whose class is `target` by name."""
    was, now = (
        Answered.of(said.answered[rows], said.names[rows] == target[rows])
        for said in (before, after)
    )
    return Moved(name, int(rows.sum()), was, now)


def by_class(target: Array, before: Said, after: Said, classes: Sequence[str]) -> list[Moved]:
    """Each of the classes that has rows."""
    found = (compared(target, before, after, name, target == name) for name in classes)
    return [each for each in found if each.n]


def cells(each: Moved) -> tuple[str, int, str, str, str, str]:
    """A row of a table."""
    shares = (each.before.answered, each.before.right, each.after.answered, each.after.right)
    was, was_right, now, now_right = map(share, shares)
    return each.name, each.n, was, was_right, now, now_right


def lines(moved: Mapping[str, Moved], classes: Sequence[Moved]) -> Iterator[str]:
    """What moved, in words: kinds of rows, then the classes that stayed and moved most."""
    for each in moved.values():
        yield f"{each.name}, {each.n} rows: before {each.before.words()}"
        yield f"{' ' * len(each.name)}  {' ' * len(str(each.n))}        after {each.after.words()}"
    some = sorted(classes, key=change_of, reverse=True)[:SHOWN]
    if not some:
        return
    width = max(len(each.name) for each in some)
    only = f", the {len(some)} of {len(classes)} that moved most" * (len(some) < len(classes))
    yield f"by class, before and after{only}:"
    for each in some:
        name, n, *shares = cells(each)
        yield f"{name:{width}} {n:>6} " + " ".join(f"{text:>9}" for text in shares)


def change_of(moved: Moved) -> float:
    """How much less or more is answered rightly."""
    was, now = (
        np.nan_to_num(each.answered) * np.nan_to_num(each.right)
        for each in (moved.before, moved.after)
    )
    return float(abs(was - now))
