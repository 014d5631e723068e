"""AUROC and AUPR on 200 fixed thresholds, as the paper's authors computed them later.

Saturated confidences fall between two thresholds and lose their order: .726 was read for a true
.828. These stand beside the exact values so that printed numbers can be compared with.
"""

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array


def _counts(inside: Array, outside: Array) -> tuple[Array, Array]:
    """True and false positives (outside positive, score 1 - confidence) above 200 thresholds."""
    if not len(inside) or not len(outside):
        raise BadInput("there must be at least one example inside and one outside")
    between = np.arange(1, 199) / 199
    thresholds = np.concatenate([[-1e-7], between, [1 + 1e-7]])

    def above(confidence: Array) -> Array:
        score = np.sort(1 - confidence).astype(np.float64)
        return np.asarray(len(score) - np.searchsorted(score, thresholds, side="right"))

    return above(outside), above(inside)


def auroc_200(inside: Array, outside: Array) -> float:
    """Trapezoids under the ROC curve at 200 thresholds of 1 - confidence.

    >>> auroc_200(np.array([0.9999, 0.9998]), np.array([0.9997, 0.1]))
    0.75
    """
    tp, fp = _counts(inside, outside)
    return float(np.trapezoid(tp[::-1] / len(outside), fp[::-1] / len(inside)))


def aupr_200(inside: Array, outside: Array) -> float:
    """Area under precision-recall (outside positive) at 200 thresholds, interpolated.

    Between two thresholds true positives are taken to grow in proportion to all positives
    (Davis and Goadrich, 2006), which integrates to slope (dTP + intercept log(P1 / P0)).

    >>> aupr_200(np.array([0.9]), np.array([0.1]))
    1.0
    """
    tp, fp = (x.astype(np.float64) for x in _counts(inside, outside))
    p = tp + fp
    d_tp, d_p = tp[:-1] - tp[1:], p[:-1] - p[1:]
    slope = np.divide(d_tp, d_p, out=np.zeros_like(d_p), where=d_p > 0)
    intercept = tp[1:] - slope * p[1:]
    ratio = np.divide(p[:-1], p[1:], out=np.ones_like(p[1:]), where=(p[1:] > 0) & (p[:-1] > 0))
    return float((slope * (d_tp + intercept * np.log(ratio))).sum() / len(outside))
