"""Is a promised share still kept? Bets against it on outcomes as they become known.

A promise that at least a of the outcomes are good is a bound on each one's chance to be bad, given
all that came before: no two of them need to be alike or independent.
"""

from typing import Any

import numpy as np

from ova.posthoc.certificates import Counts, Floats, Truths
from ova.posthoc.monitoring.wealth import asleep, bet, streaks
from ova.predictions.parallel import compiled

ODDS = np.array([1.25, 1.6, 2.2, 3.5, 6, 12, 30])  # so much more often bad than promised, in odds


class Kept:
    """The log wealth of bets against a share of good outcomes being at least what was promised.

    >>> kept = Kept(0.95)
    >>> path, since = kept.update(np.arange(400) % 5 > 0)  # 0.8 are good
    >>> bool(path.max() > np.log(100)), int(since[path.argmax()])
    (True, 0)
    """

    def __init__(self, share: float) -> None:
        self.share, bad = share, 1 - share
        rates = ODDS * bad / (share + ODDS * bad)
        # A bad outcome multiplies by more than one, a good one by less: at the promised rate, or
        # any lower one, the mean is at most one.
        self.gains = np.stack([(1 - rates) / share, rates / bad])
        self.capital, self.log, self.n = asleep(len(ODDS)), 0.0, 0
        self.streaks = np.zeros(len(ODDS)), np.zeros(len(ODDS), np.int64)

    def update(self, good: Truths, rows: Counts | None = None) -> tuple[Floats, Counts]:
        """After each of some more outcomes the log wealth, and the row where they likeliest became worse.

        Rows are numbered from 0 on, where their numbers are not given.
        """
        rows = np.arange(self.n, self.n + len(good)) if rows is None else rows
        path, since = np.empty(len(good)), np.empty(len(good), np.int64)
        kept = self.capital, self.streaks
        _follow((good, rows), self.gains, kept, (self.n, self.log), (path, since))
        self.n += len(good)
        self.log = float(path[-1]) if len(good) else self.log
        return path, since


@compiled
def _follow(seen: Any, gains: Any, kept: Any, begun: Any, found: Any) -> None:
    capital, (sums, starts) = kept
    first, log = begun
    (good, rows), (path, since) = seen, found
    logs = np.log(gains)
    for i in range(len(good)):
        how = 0 if good[i] else 1
        since[i] = streaks(sums, starts, logs[how], rows[i])
        log += np.log(bet(capital, first + i, gains[how]))
        path[i] = log
