"""A bettor who does not know when the change comes: capital that sleeps, wakes and moves between bets.

Each bet multiplies its capital by a number whose mean is at most one while nothing has changed, so
all capital together is a nonnegative supermartingale that begins at one: by Ville's inequality
the chance that it ever reaches 1 / a is at most a (docs/monitor.md).
"""

import math
from typing import Any

import numpy as np

from ova.posthoc.certificates import Floats
from ova.predictions.parallel import compiled

# Of the sleeping capital WAKES / (t + FIRST) wakes at row t: a change at row t costs about
# (1 + WAKES) log t of log wealth, however late it comes, and sleeping costs WAKES log t.
WAKES, FIRST = 0.2, 20.0
MOVES = 1e-3  # of the awake capital, from each bet to all others: what was right need not stay so


def asleep(bets: int) -> Floats:
    """All capital sleeps: first its share that sleeps, then that of each bet."""
    return np.concatenate([[1.0], np.zeros(bets)])


@compiled
def bet(capital: Any, t: float, gains: Any) -> float:
    """Let row t multiply the capital of each bet, and give the factor by which all together grew."""
    bets, awake = len(gains), 0.0
    for k in range(bets):
        awake += capital[1 + k]
    woken = capital[0] * WAKES / (t + FIRST)
    capital[0] -= woken
    each = (MOVES * awake + woken) / bets
    grown: float = capital[0]
    for k in range(bets):
        capital[1 + k] = ((1 - MOVES) * capital[1 + k] + each) * gains[k]
        grown += capital[1 + k]
    for k in range(bets + 1):
        capital[k] /= grown
    return grown


@compiled
def streaks(sums: Any, starts: Any, logs: Any, row: int) -> int:
    """The row where the streak began, up to this one, in which one of the bets did best of all.

    Of each bet `sums` has the log of what its best streak up to here won, `starts` where that began.
    """
    best, where = sums[0], row
    for k in range(len(logs)):
        if sums[k] <= 0:
            sums[k], starts[k] = 0.0, row
        sums[k] += logs[k]
        if k == 0 or sums[k] > best:
            best, where = sums[k], starts[k]
    return int(where)


def limit(level: float) -> float:
    """The log wealth that is reached with at most this probability while nothing has changed."""
    return math.log(1 / level)
