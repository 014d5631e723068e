"""Selective prediction: accuracy against a confidence threshold, risk against coverage."""

from dataclasses import dataclass

import numpy as np

from ova.metrics.calibration import counts, edges_of
from ova.metrics.metric import Metric
from ova.metrics.ranking import Detection, Ranking, rank
from ova.predictions import Predictions
from ova.predictions.columns import Array

# Every hundredth, and finer where modern networks crowd.
GRID = np.array(
    [i / 100 for i in range(100)] + [i / 1000 for i in range(991, 1000)] + [0.9999, 1.0]
)


@dataclass(frozen=True, eq=False)
class AccuracyConfidence:
    """Per threshold how many answers have at least that confidence, and how many are right."""

    threshold: Array
    kept: Array
    right: Array
    total: int

    @property
    def answered(self) -> Array:
        """Share of all examples that is answered."""
        return self.kept / self.total

    @property
    def accuracy(self) -> Array:
        """Share of right answers among those given, NaN where none is given."""
        none = np.full(len(self.kept), np.nan)
        return np.asarray(np.divide(self.right, self.kept, out=none, where=self.kept > 0))


def accuracy_confidence(
    inside: Predictions, outside: Predictions | None = None, grid: Array = GRID
) -> AccuracyConfidence:
    """Accuracy of the answers with max p >= threshold; an answer to an outside example is wrong.

    Thresholds are rounded to the type of the confidences, so that 0.9 keeps a float32 0.9.
    Lakshminarayanan et al. (2017).

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], [0, 1], normalised=True)
    >>> accuracy_confidence(said, grid=np.array([0.5, 0.9])).accuracy
    array([0.5, 1. ])
    """
    kept, right, total = np.zeros(len(grid), np.int64), np.zeros(len(grid), np.int64), 0
    for p in (inside,) if outside is None else (inside, outside):
        edges = np.concatenate([[0], grid, [2]]).astype(p.confidence.dtype)
        count, _ = counts(p.confidence, p.correct.view(np.uint8), edges, 2)
        above = np.cumsum(count[::-1], axis=0)[-2::-1]  # at or above each threshold
        kept, right, total = kept + above.sum(1), right + above[:, 1], total + len(p)
    return AccuracyConfidence(grid, kept, right, total)


def certainty(inside: Predictions, outside: Predictions | None = None) -> Ranking:
    """Right answers against wrong ones by confidence; answers to outside examples are wrong."""
    strange = inside.confidence[:0] if outside is None else outside.confidence
    return mixture(inside.confidence, inside.correct, strange)


def mixture(inside: Array, right: Array, outside: Array) -> Ranking:
    """Right answers against wrong ones by a score, and whatever is outside is answered wrongly."""
    return rank(inside[right], np.concatenate([inside[~right], outside]), both=False)


def risk_coverage(r: Ranking) -> tuple[Array, Array]:
    """Share answered and share of wrong answers among them, from the surest answer to all.

    El-Yaniv and Wiener (2010). `r` is the `certainty` of predictions.
    """
    right, wrong = r.accepted()
    return (right + wrong) / (r.n + r.m), wrong / (right + wrong)


def aurc(r: Ranking) -> float:
    """(1/N) sum_k risk of the k most confident; among equal confidences the mean over all orders.

    Geifman, Uziel and El-Yaniv (2019).

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], [0, 1], normalised=True)
    >>> aurc(certainty(said))
    0.25
    """
    from ova.metrics.counting import risk_sum

    return float(risk_sum(*r.accepted()) / (r.n + r.m))


def augrc(r: Ranking) -> float:
    """The mean over coverages of P(answered and wrong): every error weighs by how sure it was.

    (pairs of a wrong one above a right one, ties half, + W^2 / 2) / N^2 for W wrong of N, from whole
    numbers. Traub et al. (2024).

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], [0, 1], normalised=True)
    >>> augrc(certainty(said))
    0.125
    """
    from ova.metrics.counting import twice_wins

    return float(
        (2 * r.n * r.m - twice_wins(r.inside, r.outside) + r.m**2) / (2 * (r.n + r.m) ** 2)
    )


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many right, wrong and outside answers have a confidence in each bin (the paper's S6, S7)."""

    lower: Array
    upper: Array
    right: Array
    wrong: Array
    outside: Array


def histogram(inside: Predictions, outside: Predictions | None = None, bins: int = 50) -> Histogram:
    """Confidences of three sets in equal bins, left-closed, 1 in the last.

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]], [0, 1], normalised=True)
    >>> histogram(said, bins=4).right
    array([0, 0, 0, 1])
    """
    edges = edges_of(inside.confidence, bins, "equal-width")
    count, _ = counts(inside.confidence, inside.correct.view(np.uint8), edges, 2)
    strange = np.zeros(bins, np.int64)
    if outside is not None:
        at = edges_of(outside.confidence, bins, "equal-width")
        strange = counts(outside.confidence, np.zeros(len(outside), np.uint8), at, 1)[0][:, 0]
    return Histogram(edges[:-1], edges[1:], count[:, 1], count[:, 0], strange)


METRICS = {
    "aurc": Metric(
        lambda p: aurc(certainty(p)),
        "lower",
        "area under risk against coverage, by confidence",
    ),
    "augrc": Metric(
        lambda p: augrc(certainty(p)),
        "lower",
        "mean over coverages of the share that is answered and wrong, by confidence",
    ),
}
# Of the test set with examples outside the classes mixed in, which count as errors: what a user
# meets who must refuse both. Read off the ranking of `mixture`.
MIXED = {
    "aurc": Detection(aurc, "lower", "area under risk against coverage; outside counts as wrong"),
    "augrc": Detection(augrc, "lower", "mean share answered and wrong; outside counts as wrong"),
}
