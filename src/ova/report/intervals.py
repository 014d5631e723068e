"""What seeds and test examples allow one to say: means with 95 % intervals, differences, and verdicts.

All seeds share one test set, so an interval over seeds is one on this test set. A difference is
clear only if it would show with other seeds and with other examples.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb, hypot, sqrt
from statistics import fmean, stdev, variance

from ova.files import Row

LEVEL = 0.95
BOTH = "seeds and test examples"


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds; `low` and `high` are None where nothing supports an interval."""

    mean: float
    low: float | None
    high: float | None
    n: int
    how: str  # "seeds", "bootstrap" or "one seed"; a difference may have BOTH


def quantile(freedom: float, level: float = LEVEL) -> float:
    """The two-sided point of Student's t.

    >>> round(quantile(4), 3)
    2.776
    """
    from scipy.stats import t

    return float(t.ppf(0.5 + level / 2, freedom))


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


def basis(found: Iterable[Estimate]) -> str:
    """What the intervals of a table are over, for its caption."""
    redrawn = any(each.how == "bootstrap" for each in found)
    return "over examples, of one seed" if redrawn else "over seeds, on this test set"


@dataclass(frozen=True)
class Spread:
    """A difference of means over seeds, and how far seeds and test examples move it."""

    mean: float
    seeds: float  # variance of the mean over seeds
    freedom: float  # of that variance
    examples: float | None = None  # variance over test examples; None where none was measured
    count: int = 0  # of redrawn values behind it
    excess: tuple[float, float] = (0.0, 0.0)  # by which new and old may be too high on average
    how: str = ""

    def at(self, level: float = LEVEL) -> Estimate:
        """The interval: both spreads, each at its own quantile, and room for what is too high.

        As wide as Student's where only seeds matter, as the normal one where only examples do.
        """
        n, half = round(self.freedom) + 1, quantile(self.freedom, level) * sqrt(self.seeds)
        if self.examples is None:
            return Estimate(self.mean, self.mean - half, self.mean + half, n, "seeds")
        half = hypot(half, quantile(self.count - 1, level) * sqrt(self.examples))
        new, old = self.excess
        return Estimate(self.mean, self.mean - new - half, self.mean + old + half, n, BOTH)


def difference(new: Sequence[Row], old: Sequence[Row]) -> Spread | None:
    """New minus old: paired over common seeds when there are two or more, else of two groups of seeds.

    None when either side has one seed only.

    >>> rows = [{"seed": 0, "value": 0.5}, {"seed": 1, "value": 0.7}]
    >>> moved = [{"seed": 0, "value": 0.6}, {"seed": 1, "value": 0.8}]
    >>> found = difference(moved, rows)
    >>> round(found.mean, 3), found.how
    (0.1, 'paired over 2 seeds')
    """
    common = {row["seed"] for row in new} & {row["seed"] for row in old}
    paired = len(common) >= 2
    if paired:
        new, old = ([row for row in side if row["seed"] in common] for side in (new, old))
    if min(len(new), len(old)) < 2:
        return None
    a, b = ([row["value"] for row in side] for side in (new, old))
    if paired:
        before = {row["seed"]: row["value"] for row in old}
        each = [row["value"] - before[row["seed"]] for row in new]
        spread, freedom, how = variance(each) / len(each), len(each) - 1.0, "paired over"
    else:
        spread, freedom = welch(a, b)
        how = f"{len(a)} against"
    found = Spread(fmean(a) - fmean(b), spread, freedom, how=f"{how} {len(b)} seeds")
    return over_examples(found, new, old)


def over_examples(found: Spread, new: Sequence[Row], old: Sequence[Row]) -> Spread:
    """The same difference with its spread over test examples, where every run has its halves.

    All runs have the same halves of the examples, so what is hard for all of them cancels. As if two
    more examples had been off by one: few errors say little about their rate.
    """
    rows = [*new, *old]
    count = len(rows[0].get("halves", ()))
    if count < 2 or any(len(row.get("halves", ())) != count for row in rows):
        return found
    a, b = (
        [fmean(h) for h in zip(*(r["halves"] for r in side), strict=True)] for side in (new, old)
    )
    moved = variance(x - y for x, y in zip(a, b, strict=True))
    few = 2 / min(row["n"] for row in rows) ** 2
    above, below = (fmean(row.get("excess", 0.0) for row in side) for side in (new, old))
    return replace(found, examples=moved + few, count=count, excess=(above, below))


def welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float]:
    """The variance of a difference of means, and its degrees of freedom (Welch, 1947)."""
    va, vb = variance(a) / len(a), variance(b) / len(b)
    if va + vb == 0:
        return 0.0, 1.0
    return va + vb, (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))


def sign(found: Spread | None, level: float = LEVEL) -> int:
    """1 or -1 if a difference would show with other seeds and other test examples, else 0."""
    if found is None or found.examples is None:
        return 0
    shown = found.at(level)
    assert shown.low is not None
    assert shown.high is not None
    return (shown.low > 0) - (shown.high < 0)


@dataclass(frozen=True)
class Verdict:
    """Which label has the best mean, and which cannot be told from it."""

    best: str
    tied: tuple[str, ...]
    basis: str  # BOTH where some difference could be tested, else "seeds" or "one seed"


def verdict(rows: Sequence[Row], labels: Sequence[str], higher: bool) -> Verdict | None:
    """The best mean, and every label that is not clearly behind it.

    To be ahead of all takes a clear difference from each, which is wrong in at most 5 % of cases
    as it is. Whom of several it is ahead of is one choice of many pairs: each has its share of the 5 %.
    """
    groups = {label: [row for row in rows if row["label"] == label] for label in labels}
    groups = {label: group for label, group in groups.items() if group}
    if not groups:
        return None
    better = 1 if higher else -1
    best = max(groups, key=lambda k: better * fmean(row["value"] for row in groups[k]))
    others = {k: difference(groups[best], group) for k, group in groups.items() if k != best}
    known = [found for found in others.values() if found is not None]
    tested = any(found.examples is not None for found in known)
    basis = BOTH if tested else "seeds" if known else "one seed"
    if all(sign(found) == better for found in others.values()):
        return Verdict(best, (), basis)
    level = 1 - (1 - LEVEL) / comb(len(groups), 2)
    return Verdict(best, tuple(k for k, f in others.items() if sign(f, level) != better), basis)
