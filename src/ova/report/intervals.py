"""What seeds allow one to say: means with 95 % intervals, differences, and plain verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean, stdev

from ova.files import Row

LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds; `low` and `high` are None where nothing supports an interval."""

    mean: float
    low: float | None
    high: float | None
    n: int
    how: str  # "seeds", "bootstrap" or "one seed"

    def overlaps(self, other: "Estimate") -> bool:
        """Whether the intervals share a point; without intervals nothing can be told apart."""
        if None in (self.low, self.high, other.low, other.high):
            return True
        return self.low <= other.high and other.low <= self.high  # type: ignore[operator]


def quantile(freedom: float) -> float:
    """The two-sided 95 % point of Student's t.

    >>> round(quantile(4), 3)
    2.776
    """
    from scipy.stats import t

    return float(t.ppf(0.5 + LEVEL / 2, freedom))


def over_seeds(values: Sequence[float]) -> Estimate:
    """Mean and t-interval: m ± t(n - 1) s / sqrt(n), from two seeds on.

    >>> over_seeds([1.0, 2.0, 3.0])
    Estimate(mean=2.0, low=-0.484..., high=4.484..., n=3, how='seeds')
    >>> over_seeds([0.5]).how
    'one seed'
    """
    n, mean = len(values), fmean(values)
    if n < 2:
        return Estimate(mean, None, None, n, "one seed")
    half = quantile(n - 1) * stdev(values) / sqrt(n)
    return Estimate(mean, mean - half, mean + half, n, "seeds")


def estimate(rows: Sequence[Row]) -> Estimate:
    """The estimate of one label's rows: over seeds, else the one row's bootstrap interval, else bare."""
    if len(rows) == 1 and "low" in rows[0]:
        row = rows[0]
        return Estimate(row["value"], row["low"], row["high"], 1, "bootstrap")
    found = over_seeds([row["value"] for row in rows])
    if found.low is None or found.high is None:
        return found
    # Shares and calibration errors lie between 0 and 1, whatever the normal approximation thinks.
    return replace(found, low=max(0.0, found.low), high=min(1.0, found.high))


def estimates(rows: Sequence[Row], labels: Sequence[str]) -> dict[str, Estimate]:
    """The estimate of every label that has rows."""
    grouped = {label: [row for row in rows if row["label"] == label] for label in labels}
    return {label: estimate(group) for label, group in grouped.items() if group}


def difference(new: Sequence[Row], old: Sequence[Row]) -> tuple[Estimate, str]:
    """New minus old: paired over common seeds when there are two or more, else Welch's interval.

    >>> rows = [{"seed": 0, "value": 0.5}, {"seed": 1, "value": 0.7}]
    >>> moved = [{"seed": 0, "value": 0.6}, {"seed": 1, "value": 0.8}]
    >>> round(difference(moved, rows)[0].mean, 3), difference(moved, rows)[1]
    (0.1, 'paired over 2 seeds')
    """
    before = {row["seed"]: row["value"] for row in old}
    pairs = [row["value"] - before[row["seed"]] for row in new if row["seed"] in before]
    if len(pairs) >= 2:
        return over_seeds(pairs), f"paired over {len(pairs)} seeds"
    a, b = [row["value"] for row in new], [row["value"] for row in old]
    mean = fmean(a) - fmean(b)
    if min(len(a), len(b)) < 2:
        return Estimate(mean, None, None, 1, "one seed"), "one seed: no interval"
    return welch(a, b), f"{len(a)} against {len(b)} seeds"


def welch(a: Sequence[float], b: Sequence[float]) -> Estimate:
    """The interval of a difference of means with unequal variances (Welch, 1947)."""
    mean = fmean(a) - fmean(b)
    va, vb = stdev(a) ** 2 / len(a), stdev(b) ** 2 / len(b)
    if va + vb == 0:
        return Estimate(mean, mean, mean, len(a), "seeds")
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    half = quantile(freedom) * sqrt(va + vb)
    return Estimate(mean, mean - half, mean + half, min(len(a), len(b)), "seeds")


@dataclass(frozen=True)
class Verdict:
    """Which label is best, and which cannot be told from it."""

    best: str
    tied: tuple[str, ...]
    certain: bool  # False when some label has no interval at all


def verdict(table: dict[str, Estimate], higher: bool) -> Verdict | None:
    """The best mean, and everything whose interval overlaps with its interval.

    >>> table = {"a": Estimate(.9, .88, .92, 3, "seeds"), "b": Estimate(.8, .79, .81, 3, "seeds")}
    >>> verdict(table, higher=True)
    Verdict(best='a', tied=(), certain=True)
    """
    if not table:
        return None
    sign = 1 if higher else -1
    best = max(table, key=lambda label: sign * table[label].mean)
    tied = tuple(k for k, e in table.items() if k != best and e.overlaps(table[best]))
    return Verdict(best, tied, all(e.low is not None for e in table.values()))
