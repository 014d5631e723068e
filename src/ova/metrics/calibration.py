"""Calibration: the reliability curve, and the numbers read off it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from ova.errors import BadInput
from ova.metrics.metric import ByRow, Metric
from ova.predictions import Predictions
from ova.predictions.columns import Array

BINS = 15
CELLS = 1024  # of the table that guesses a bin
ROWS = 1 << 20  # counted at a time, so that the sums are the same on any number of cores
KNOWN = 3  # standard errors from which on the sign of a bin's gap is taken as known


@dataclass(frozen=True, eq=False)
class Reliability:
    """Per bin how many answers fell into it, their confidences added up, and how many were right.

    Sums, not means, so that curves of parts add up to the curve of the whole.
    """

    lower: Array
    upper: Array
    count: Array
    total: Array  # of the confidences
    right: Array

    @property
    def confidence(self) -> Array:
        """Mean confidence per bin, NaN where the bin is empty."""
        return _ratio(self.total, self.count)

    @property
    def accuracy(self) -> Array:
        """Share of right answers per bin, NaN where the bin is empty."""
        return _ratio(self.right, self.count)

    @property
    def gaps(self) -> Array:
        """|accuracy - confidence| times the count, per bin."""
        return np.asarray(np.abs(self.right - self.total))

    def __add__(self, other: "Reliability") -> "Reliability":
        if not np.array_equal(self.lower, other.lower):
            raise BadInput("reliability curves of different bins cannot be added")
        sums = (self.count + other.count, self.total + other.total, self.right + other.right)
        return Reliability(self.lower, self.upper, *sums)


def reliability(p: Predictions, bins: int = BINS, rule: str = "equal-width") -> Reliability:
    """Accuracy against confidence in bins; left-closed, 1 in the last.

    `equal-width`: bin i is [i/bins, (i+1)/bins), its edges rounded to the type of the confidences,
    so that a float32 confidence of 1/15 opens the second of fifteen bins.
    `equal-mass`: edge i is the confidence of rank floor(i N / bins). Equal confidences stay
    together, so the order of the rows has no say and there may be fewer bins than asked for.

    DeGroot and Fienberg (1983); Niculescu-Mizil and Caruana (2005).

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.3, 0.7]], [0, 0], normalised=True)
    >>> reliability(said, bins=2).count
    array([0, 2])
    """
    return _in_bins(p.confidence, p.correct, edges_of(p.confidence, bins, rule))


def edges_of(confidence: Array, bins: int, rule: str) -> Array:
    """The edges of the bins, in the type of the confidences."""
    if bins < 1:
        raise BadInput(f"there must be at least 1 bin, not {bins}")
    if rule == "equal-width":
        return (np.arange(bins + 1) / bins).astype(confidence.dtype)
    if rule == "equal-mass":
        return _equal_mass(np.sort(confidence), bins)
    raise BadInput(f"no rule for bins called {rule!r}. There is: equal-width, equal-mass")


def _equal_mass(ordered: Array, bins: int) -> Array:
    if not len(ordered):
        raise BadInput("there are no predictions to divide into bins")
    starts = np.unique(ordered[np.arange(bins) * len(ordered) // bins])
    return np.append(starts, ordered[-1])  # the last bin is closed: its upper edge may be its lower


def _in_bins(confidence: Array, right: Array, edges: Array) -> Reliability:
    count, total = counts(confidence, right.view(np.uint8), edges, 2)
    return Reliability(edges[:-1], edges[1:], count.sum(1), total.sum(1), count[:, 1])


def counts(confidence: Array, group: Array, edges: Array, groups: int) -> tuple[Array, Array]:
    """Per bin and group, the number of confidences and their sum."""
    from ova.metrics.counting import count_in_bins
    from ova.predictions.parallel import by_blocks

    cells = np.linspace(edges[0], edges[-1], CELLS, endpoint=False)
    guess = np.searchsorted(edges, cells, side="right").clip(1, len(edges) - 1) - 1

    def block(start: int, stop: int) -> tuple[Array, Array]:
        return count_in_bins(confidence[start:stop], group[start:stop], edges, guess, groups)

    parts = by_blocks(len(confidence), ROWS, block)
    shape = (len(edges) - 1, groups)
    count: Array = sum((part[0] for part in parts), np.zeros(shape, np.int64))
    total: Array = sum((part[1] for part in parts), np.zeros(shape))
    return count, total


def expected_error(curve: Reliability) -> float:
    """ECE = sum_b |B_b| / N |accuracy_b - confidence_b|. Naeini et al. (2015), Guo et al. (2017).

    >>> said = Predictions.from_probs([[0.75, 0.25], [0.25, 0.75]], [0, 0], normalised=True)
    >>> expected_error(reliability(said))
    0.25
    """
    return float(curve.gaps.sum() / curve.count.sum())


def signed_gaps(p: Predictions, bins: int = BINS, rule: str = "equal-width") -> ByRow:
    """(right - confidence) with the sign of its bin's sum, for each example: its mean is the ECE.

    A gap is counted by its size, so noise never cancels: where the true gap is 0, E|gap| is
    sqrt(2 / pi) standard errors, and it is never more than that above the true size. With the true
    sign instead of the seen one the mean has no bias. So the ECE is, on average, between the truth
    and the truth plus `excess`, to which bins of a known sign add nothing.

    >>> said = Predictions.from_probs([[0.75, 0.25], [0.25, 0.75]], [0, 0], normalised=True)
    >>> signed_gaps(said).values
    array([-0.25,  0.75])
    """
    edges = edges_of(p.confidence, bins, rule)
    at = (np.searchsorted(edges, p.confidence, side="right") - 1).clip(0, len(edges) - 2)
    gap = p.correct - p.confidence.astype(np.float64)
    total, squares = np.bincount(at, gap), np.bincount(at, gap**2)
    unknown = np.abs(total) < KNOWN * np.sqrt(squares)
    excess = math.sqrt(2 / math.pi) * np.sqrt(squares[unknown]).sum() / len(p)
    return ByRow(np.where(total < 0, -1, 1)[at] * gap, float(excess))


def largest_error(curve: Reliability) -> float:
    """MCE = max_b |accuracy_b - confidence_b| over the bins that are not empty. Naeini et al. (2015).

    >>> said = Predictions.from_probs([[0.75, 0.25], [0, 1]], [0, 0], normalised=True)
    >>> largest_error(reliability(said))
    1.0
    """
    return float(np.nanmax(_ratio(curve.gaps, curve.count)))


def rms_error(curve: Reliability) -> float:
    """RMS = sqrt(sum_b |B_b| / N (accuracy_b - confidence_b)^2). Hendrycks et al. (2019).

    >>> said = Predictions.from_probs([[0.75, 0.25], [0.25, 0.75]], [0, 0], normalised=True)
    >>> rms_error(reliability(said))
    0.25
    """
    gap = _ratio(curve.gaps, curve.count)
    return float(np.sqrt(np.nansum(curve.count * gap**2) / curve.count.sum()))


def classwise_error(p: Predictions, bins: int = BINS) -> float | None:
    """(1/K) sum_k sum_b |B_kb| / N |share of class k in B_kb - mean p_k in B_kb|, all K columns.

    Kull et al. (2019). Needs the matrix; None without it.

    >>> said = Predictions.from_probs([[0.75, 0.25]], [0], normalised=True, keep_probs=True)
    >>> classwise_error(said)
    0.25
    """
    if p.probs is None:
        return None
    edges = edges_of(p.confidence, bins, "equal-width")
    curves = (
        _in_bins(np.ascontiguousarray(p.probs[:, k]), p.target == k, edges)
        for k in range(p.probs.shape[1])
    )
    return float(np.mean([expected_error(curve) for curve in curves]))


def _ratio(above: Array, below: Array) -> Array:
    empty = np.full(len(below), np.nan)
    return np.asarray(np.divide(above, below, out=empty, where=below > 0))


def _off(read: Callable[[Reliability], float], about: str, rule: str = "equal-width") -> Metric:
    return Metric(
        lambda p: read(reliability(p, BINS, rule)),
        "lower",
        about,
        {"bins": BINS, "rule": rule},
        calibrated=True,
        redrawn=False,  # drawing again adds noise to noise, and gaps count it twice
        rows=partial(signed_gaps, rule=rule) if read is expected_error else None,
    )


METRICS = {
    "ece": _off(expected_error, "expected calibration error, equal-width bins"),
    "ece_equal_mass": _off(
        expected_error, "expected calibration error, bins of equal counts", "equal-mass"
    ),
    "ece_classwise": Metric(
        classwise_error,
        "lower",
        "mean calibration error of each class's p",
        {"bins": BINS, "rule": "equal-width"},
        redrawn=False,
    ),
    "mce": _off(largest_error, "largest gap between accuracy and confidence in a bin"),
    "rms_calibration_error": _off(
        rms_error, "root mean square gap between accuracy and confidence"
    ),
}
