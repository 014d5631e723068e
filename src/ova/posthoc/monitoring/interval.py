"""A share and its bounds at every moment: a confidence sequence for outcomes that need not be alike.

For a fixed x, exp(x S_n) / (1 + m (e^x - 1))^n is at most a martingale that begins at one, where S_n
counts the good of n outcomes and m is the mean of their chances given what came before. So is its
mean over several x; the m for which that stays below 1 / level are the bounds (docs/monitor.md).
"""

import numpy as np
from scipy.special import logsumexp

from ova.posthoc.certificates import Counts, Floats, Truths

STEPS = np.concatenate([sign * np.geomspace(1e-3, 8, 40) for sign in (-1, 1)])
HALVINGS = 40


def bounds(good: Truths, at: Counts, certainty: float) -> tuple[Floats, Floats]:
    """Low and high after the first `at` outcomes, each at least one, all at once with this certainty.

    >>> low, high = bounds(np.arange(1000) % 10 > 0, np.array([100, 1000]), 0.95)
    >>> low.round(2), high.round(2)
    (array([0.77, 0.86]), array([0.97, 0.93]))
    """
    n = np.asarray(at, np.int64)
    hits = np.cumsum(good, dtype=np.int64)[n - 1]
    most = np.log(1 / (1 - certainty))
    rate = (
        hits / n
    )  # there the log wealth is at most zero: every denominator is the largest or more
    return (
        _halved(np.zeros(len(n)), rate, (hits, n, most)),
        _halved(np.ones(len(n)), rate, (hits, n, most)),
    )


def _halved(far: Floats, near: Floats, seen: tuple[Counts, Counts, float]) -> Floats:
    """Between a value that may be ruled out and one that is not, the edge, to the side of the first."""
    hits, n, most = seen
    for _ in range(HALVINGS):
        middle = (far + near) / 2
        out = log_wealth(middle, hits, n) >= most
        far, near = np.where(out, middle, far), np.where(out, near, middle)
    return far


def log_wealth(m: Floats, hits: Counts, n: Counts) -> Floats:
    """The log of the mean, over the steps x, of exp(x S_n) / (1 + m (e^x - 1))^n."""
    x = STEPS[:, None]
    # log(1 + m (e^x - 1)) is -inf only at m = 1 for x = -inf, which is no step.
    logs = x * hits - n * np.log1p(m * np.expm1(x))
    found: Floats = logsumexp(logs, axis=0) - np.log(len(STEPS))
    return found
