"""Is a promised share still kept? Bets against it on outcomes as they become known.

A promise that at least a of the outcomes are good is a bound on each one's chance to be bad, given
all that came before: no two of them need to be alike or independent.
"""

from typing import Any

import numpy as np

from ova.posthoc.certificates import Floats, Truths
from ova.posthoc.monitoring.wealth import asleep, bet
from ova.predictions.parallel import compiled

ODDS = np.array([1.25, 1.6, 2.2, 3.5, 6, 12, 30])  # so much more often bad than promised, in odds


class Kept:
    """The log wealth of bets against a share of good outcomes being at least what was promised.

    >>> kept = Kept(0.95)
    >>> path = kept.update(np.arange(400) % 5 > 0)  # 0.8 are good
    >>> bool(path.max() > np.log(100)), kept.since(int(path.argmax()))
    (True, 0)
    """

    def __init__(self, share: float) -> None:
        self.share, bad = share, 1 - share
        rates = ODDS * bad / (share + ODDS * bad)
        # A bad outcome multiplies by more than one, a good one by less: at the promised rate, or
        # any lower one, the mean is at most one.
        self.gains = np.stack([(1 - rates) / share, rates / bad])
        self.capital, self.log, self.n = asleep(len(ODDS)), 0.0, 0
        self.outcomes = [np.empty(0, bool)]

    def update(self, good: Truths) -> Floats:
        """The log wealth after each of some more outcomes."""
        path = np.empty(len(good))
        _follow(good, self.gains, self.capital, (self.n, self.log), path)
        self.n += len(good)
        self.log = float(path[-1]) if len(good) else self.log
        self.outcomes.append(good)
        return path

    def since(self, alarm: int) -> int:
        """Where the outcomes that led to an alarm after `alarm` are likeliest to have become worse."""
        good = np.concatenate(self.outcomes)[alarm::-1]
        gains = np.log(self.gains)[(~good).astype(np.intp)]
        return alarm - int(np.cumsum(gains, axis=0).max(axis=1).argmax())


@compiled
def _follow(good: Any, gains: Any, capital: Any, begun: Any, path: Any) -> None:
    first, log = begun
    for i in range(len(good)):
        log += np.log(bet(capital, first + i, gains[0 if good[i] else 1]))
        path[i] = log
