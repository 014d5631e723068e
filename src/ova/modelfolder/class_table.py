"""What a model does for each class: how many rows it answers, how often rightly, and with which classes never."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import isnan, nan

import numpy as np

from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import Predictions

SHOWN = 20  # classes that are printed; of more the worst
SHARES = ("accuracy", "answered", "right")
MACRO = "mean of the classes"
WARNING = "warning: "


@dataclass(frozen=True)
class OfClass:
    """The rows of a class: how many, and what becomes of them. NaN is the share of nothing."""

    name: str
    n: int
    accuracy: float  # right before anything is refused
    answered: float
    right: float  # of those answered


@dataclass(frozen=True)
class PerClass:
    """What the test rows say of each class, and the classes that no held-out row was answered with."""

    classes: tuple[OfClass, ...]
    never: tuple[str, ...]

    def macro(self, column: str) -> float:
        """The mean over the classes that have rows, each counted once."""
        values = [getattr(c, column) for c in self.classes]
        there = [v for v in values if not isnan(v)]
        return float(np.mean(there)) if there else nan


def per_class(
    p: Predictions,
    held: Iterable[Predictions],
    threshold: Threshold | Thresholds,
    classes: Sequence[str],
) -> PerClass:
    """Count rows by class; a class is never answered if no held-out row is."""
    count = len(classes)
    above = threshold.answers(p.confidence, p.prediction)
    n, hits, kept, good = (
        np.bincount(p.target[rows], minlength=count)
        for rows in (np.full(len(p), True), p.correct, above, above & p.correct)
    )
    with np.errstate(invalid="ignore"):
        accuracy, answered, right = hits / n, kept / n, good / kept
    columns = (n, accuracy, answered, right)
    rows = zip(classes, *(column.tolist() for column in columns), strict=True)
    said = [q.prediction[threshold.answers(q.confidence, q.prediction)] for q in held]
    heard = np.unique(np.concatenate(said))
    never = tuple(name for k, name in enumerate(classes) if k not in heard)
    return PerClass(tuple(OfClass(*row) for row in rows), never)


def rows_of(found: PerClass) -> Iterator[tuple[str, int, str, str, str]]:
    """A row of a table for each class, then the macro averages: each class counted once."""
    for c in found.classes:
        yield c.name, c.n, share(c.accuracy), share(c.answered), share(c.right)
    count = sum(c.n for c in found.classes)
    yield MACRO, count, *(share(found.macro(column)) for column in SHARES)  # type: ignore[misc]


def lines(found: PerClass, rows: str) -> Iterator[str]:
    """A table for the screen, and a warning for what is never said."""
    *classes, macro = rows_of(found)
    worst = sorted(range(len(classes)), key=lambda k: badness(found.classes[k]))[:SHOWN]
    some = [classes[k] for k in sorted(worst)]
    width = max(len(row[0]) for row in [*some, macro])
    only = f", the worst {len(some)} of {len(classes)}" * (len(some) < len(classes))
    yield f"by class, on {rows}{only}:"
    for name, n, *shares in [("", "rows", *SHARES), *some, macro]:
        yield f"{name:{width}} {n:>6} " + " ".join(f"{text:>9}" for text in shares)
    if found.never:
        names = ", ".join(map(repr, found.never))
        yield f"{WARNING}no held-out row is ever answered with {names}; more rows of them would help"


def badness(c: OfClass) -> tuple[bool, float, float]:
    """Classes without rows last, those that are rarely answered first."""
    return c.n == 0, c.answered, c.accuracy


def share(value: float) -> str:
    """A share in percent; a dash for that of nothing.

    >>> share(0.954), share(nan)
    ('95.4 %', '-')
    """
    return "-" if isnan(value) else f"{100 * value:.1f} %"
