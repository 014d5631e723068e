"""Out-of-distribution detection: AUROC, average precision, FPR at 95 % TPR from one sort of the scores.

Higher means inside, everywhere. The positive class is named in each function.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ova.errors import BadInput
from ova.predictions.columns import Array


@dataclass(frozen=True, eq=False)
class Ranking:
    """The distinct scores, ascending, and how many inside and outside are at or below each.

    It holds the whole ROC and precision-recall curve, ties included; a threshold t accepts s >= t.
    """

    score: Array
    inside: Array
    outside: Array
    n: int  # inside
    m: int  # outside

    def accepted(self) -> tuple[Array, Array]:
        """How many inside and outside pass each distinct score, the strictest first."""
        return _not_below(self.inside), _not_below(self.outside)


@dataclass(frozen=True)
class Detection:
    """A number about scores of two sets, inside and outside, read off their ranking."""

    measure: Callable[[Ranking], float]
    better: str
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, r: Ranking) -> float:
        return self.measure(r)


def rank(inside: ArrayLike, outside: ArrayLike, *, both: bool = True) -> Ranking:
    """Sort two sets of scores once; with `both`, neither may be empty.

    >>> r = rank([0.9, 0.5], [0.5, 0.1])
    >>> r.inside, r.outside
    (array([0, 1, 2], dtype=int32), array([1, 2, 2], dtype=int32))
    """
    from ova.metrics.counting import tally

    a, b = _scores(inside, "inside"), _scores(outside, "outside")
    for side, scores in (("inside", a), ("outside", b)) if both else ():
        if not len(scores):
            raise BadInput(f"there is no example {side}: ranking needs one of each kind")
    dtype = np.result_type(a, b)
    rows = len(a) + len(b)
    score, ins, outs = np.empty(rows, dtype), np.empty(rows, np.int32), np.empty(rows, np.int32)
    a, b = _sorted(a.astype(dtype, copy=False), b.astype(dtype, copy=False))
    g = tally(a, b, score, ins, outs)
    return Ranking(score[:g], ins[:g], outs[:g], len(a), len(b))


def _sorted(a: Array, b: Array) -> list[Array]:
    from ova.predictions.parallel import by_blocks

    # Two threads: numpy lets go of the interpreter while it sorts.
    return by_blocks(2, 1, lambda start, _: np.sort(b if start else a))


def _not_below(at_or_below: Array) -> Array:
    passed = np.full(len(at_or_below), at_or_below[-1], np.int64)
    passed[:-1] -= at_or_below[-2::-1]
    return passed


def _scores(values: ArrayLike, side: str) -> Array:
    s = np.asarray(values)
    s = s if s.dtype in (np.float32, np.float64) else s.astype(np.float64)
    if s.ndim != 1:
        raise BadInput(f"scores {side} must be one per example, not of shape {s.shape}")
    if np.isnan(s).any():
        raise BadInput(f"row {int(np.isnan(s).argmax())} {side}: the score is NaN")
    return s


def auroc(r: Ranking) -> float:
    """P(inside > outside) + P(inside = outside) / 2, exact: pairs are counted in whole numbers.

    Hanley and McNeil (1982).

    >>> auroc(rank([0.9, 0.5], [0.5, 0.1]))
    0.875
    """
    from ova.metrics.counting import twice_wins

    return float(twice_wins(r.inside, r.outside) / (2 * r.n * r.m))


def aupr_inside(r: Ranking) -> float:
    """Average precision with inside as the positive class: sum over thresholds of dR P.

    Davis and Goadrich (2006) say why no straight lines are drawn between the points.

    >>> aupr_inside(rank([0.9, 0.3], [0.5]))
    0.8333333333333333
    """
    from ova.metrics.counting import precision_sum

    return float(precision_sum(*r.accepted()) / r.n)


def aupr_outside(r: Ranking) -> float:
    """Average precision with outside as the positive class, found by low scores.

    >>> aupr_outside(rank([0.9, 0.3], [0.5]))
    0.5
    """
    from ova.metrics.counting import precision_sum

    return float(precision_sum(r.outside, r.inside) / r.m)


def fpr_at_tpr(r: Ranking, level: float = 0.95) -> float:
    """Share of outside accepted at the highest threshold that accepts `level` of inside.

    >>> fpr_at_tpr(rank([0.9, 0.3], [0.5, 0.1]))
    0.5
    """
    # 0.95 is not a binary fraction: 0.95 * 20 must ask for 19, however it is rounded.
    needed = math.ceil(Fraction(level).limit_denominator(10**6) * r.n)
    refused = np.searchsorted(r.inside[:-1], r.n - needed, side="right")  # distinct scores
    return float((r.m - (r.outside[refused - 1] if refused else 0)) / r.m)


def detection_error(r: Ranking) -> float:
    """The minimum over thresholds of (1 - TPR + FPR) / 2, both sides weighing the same. Lee et al. (2018).

    >>> detection_error(rank([0.9, 0.3], [0.5, 0.1]))
    0.25
    """
    from ova.metrics.counting import smallest_error

    return float(smallest_error(r.inside, r.outside))


def roc(r: Ranking) -> tuple[Array, Array]:
    """False and true positive rate (inside positive) from the strictest threshold to none.

    >>> roc(rank([0.9], [0.1]))
    (array([0., 0., 1.]), array([0., 1., 1.]))
    """
    tp, fp = r.accepted()
    return np.append(0, fp) / r.m, np.append(0, tp) / r.n


def precision_recall(r: Ranking) -> tuple[Array, Array]:
    """Recall and precision (inside positive) from the strictest threshold to none.

    >>> precision_recall(rank([0.9], [0.1]))
    (array([1., 1.]), array([1. , 0.5]))
    """
    tp, fp = r.accepted()
    return tp / r.n, tp / (tp + fp)


DETECTION = {
    "auroc": Detection(auroc, "higher", "P(inside scores above outside), ties half; exact"),
    "aupr_inside": Detection(
        aupr_inside, "higher", "average precision, inside positive", {"positive": "inside"}
    ),
    "aupr_outside": Detection(
        aupr_outside,
        "higher",
        "average precision, outside positive (the paper's AUPRC)",
        {"positive": "outside"},
    ),
    "fpr95": Detection(
        fpr_at_tpr, "lower", "outside accepted where 95 % of inside is", {"tpr": 0.95}
    ),
    "detection_error": Detection(
        detection_error, "lower", "smallest mean of the two error rates", {"prior": 0.5}
    ),
}
