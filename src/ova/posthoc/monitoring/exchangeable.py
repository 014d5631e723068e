"""A conformal test martingale: bets on p-values that would be uniform if nothing had changed.

Vovk, Nouretdinov and Gammerman (2003). The bets are beta densities, for scores that fall, rise,
spread or draw together, little or much, and two histograms of the last p-values for whatever else.
"""

from typing import Any

import numpy as np
from scipy.special import betaln

from ova.posthoc.certificates import Counts, Floats
from ova.posthoc.monitoring.ranks import Ranks
from ova.posthoc.monitoring.wealth import asleep, bet, streaks
from ova.predictions.parallel import compiled

LOWER = ((0.9, 1.2), (0.8, 1.3), (0.6, 1.6), (0.3, 3))  # of p, where scores have become lower
SHAPES = np.array([*LOWER, *((b, a) for a, b in LOWER), (0.6, 0.6), (2, 2)], np.float64)
BETS = np.column_stack([SHAPES - 1, -betaln(*SHAPES.T)])  # exponents of p and 1 - p, log constant
BINS, PRIOR = 10, 10.0  # of each histogram; so many p-values in each bin are imagined
KEEPS = np.array([0.99, 0.999])  # of each histogram after a row: it knows the last 100, or 1,000
SMALLEST = 2.0**-53  # p-values are kept inside (0, 1)


class Exchangeability:
    """The log wealth of bets against a stream of scores being exchangeable with calibration scores."""

    def __init__(self, calibration: Floats, seed: list[int]) -> None:
        self.ranks, self.lots = Ranks(calibration), np.random.default_rng(seed)
        self.capital = asleep(len(BETS) + len(KEEPS))
        self.bins = np.zeros((len(KEEPS), BINS))
        self.streaks = np.zeros(len(BETS)), np.zeros(len(BETS), np.int64)
        self.log, self.n = 0.0, 0

    def update(self, s: Floats, rows: Counts | None = None) -> tuple[Floats, Counts]:
        """After each of some more scores the log wealth, and the row where a change likeliest began.

        Rows are numbered from 0 on, where their numbers are not given.
        """
        rows = np.arange(self.n, self.n + len(s)) if rows is None else rows
        p = self.ranks.p_values(s, self.lots.random(len(s)))
        p = np.clip(p, SMALLEST, 1 - SMALLEST)
        path, since = np.empty(len(s)), np.empty(len(s), np.int64)
        kept = self.bins, self.capital, self.streaks
        _follow((p, rows), (BETS, KEEPS), kept, (self.n, self.log), (path, since))
        self.n += len(s)
        self.log = float(path[-1]) if len(s) else self.log
        return path, since


@compiled
def _density(bet: Any, log_p: float, log_q: float) -> float:
    return float(bet[0] * log_p + bet[1] * log_q + bet[2])


@compiled
def _follow(seen: Any, how: Any, kept: Any, begun: Any, found: Any) -> None:
    """Log wealth after each p-value; a histogram bets on what it knew before."""
    bets, keeps = how
    bins, capital, (sums, starts) = kept
    first, log = begun
    (p, rows), (path, since) = seen, found
    gains, logs = np.empty(len(bets) + len(keeps)), np.empty(len(bets))
    for i in range(len(p)):
        log_p, log_q = np.log(p[i]), np.log1p(-p[i])
        for k in range(len(bets)):
            logs[k] = _density(bets[k], log_p, log_q)
            gains[k] = np.exp(logs[k])
        since[i] = streaks(sums, starts, logs, rows[i])
        place = int(p[i] * BINS)
        for h in range(len(keeps)):
            total = 0.0
            for b in range(BINS):
                total += bins[h, b]
            gains[len(bets) + h] = BINS * (bins[h, place] + PRIOR) / (total + BINS * PRIOR)
            for b in range(BINS):
                bins[h, b] *= keeps[h]
            bins[h, place] += 1
        log += np.log(bet(capital, first + i, gains))
        path[i] = log
