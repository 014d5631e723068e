"""Intervals over examples: of any metric of one model, and of the difference of two models.

Most metrics are redrawn. The size of a calibration error is not: noise never cancels in it, redrawn
noise is added, and such intervals miss the truth. The ECE has one from its rows; the others none.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ova.errors import BadInput
from ova.metrics.metric import ByRow, Mean, Metric
from ova.metrics.ranking import Ranking
from ova.predictions import Predictions
from ova.predictions.columns import Array

Statistic = Callable[..., float | None]  # of one or more Predictions
CELLS = 1 << 22  # row numbers drawn at a time
NOTHING = ByRow(np.zeros(1))  # what a single value is compared with


@dataclass(frozen=True, kw_only=True)
class Draws:
    """How often to redraw, from which seed, and which share of the values lies in the interval."""

    count: int = 1000
    seed: int = 0
    level: float = 0.95


DRAWS = Draws()


@dataclass(frozen=True)
class Interval:
    """A value, and the range in which the truth lies as often as asked; None if unknown."""

    value: float
    low: float | None = None
    high: float | None = None


def bootstrap(statistic: Statistic, *samples: Predictions, draws: Draws = DRAWS) -> Interval | None:
    """Percentile interval of statistic(*samples), each sample redrawn on its own; None if undefined.

    Efron (1979). One sample for accuracy, two (inside, outside) for AUROC. Calibration errors are
    not redrawn: the ECE has an interval from its rows, the others a value alone.

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]] * 50, [0, 0] * 50, normalised=True)
    >>> bootstrap(Mean(lambda p: p.correct), said, draws=Draws(count=200))
    Interval(value=0.5, low=0.41, high=0.59025)
    """
    return bootstrap_all({"": statistic}, *samples, draws=draws)[""]


def paired_difference(
    statistic: Statistic,
    first: Sequence[Predictions],
    second: Sequence[Predictions],
    draws: Draws = DRAWS,
) -> Interval | None:
    """Interval of statistic(*second) - statistic(*first), both redrawn with the same examples.

    What both models find hard cancels, so the interval is much shorter than two apart would say.

    >>> one = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]] * 50, [0, 0] * 50, normalised=True)
    >>> two = Predictions.from_probs([[0.9, 0.1], [0.6, 0.4]] * 50, [0, 0] * 50, normalised=True)
    >>> paired_difference(Mean(lambda p: p.correct), [one], [two], Draws(count=200)).value
    0.5
    """
    for a, b in zip(first, second, strict=True):
        if not (np.array_equal(a.id, b.id) and np.array_equal(a.target, b.target)):
            raise BadInput("a paired difference needs the same examples in the same order")
    before, after = statistic(*first), statistic(*second)
    if before is None or after is None:
        return None
    if fixed := _not_redrawn({"": statistic}):
        rows, others = (fixed[""].by_row(samples[0]) for samples in (first, second))
        return _of_rows(after - before, rows, others, draws)
    one, other = (_redrawn({"": statistic}, samples, draws)[""] for samples in (first, second))
    return _interval(after - before, other - one, draws)


def bootstrap_all(
    statistics: Mapping[str, Statistic], *samples: Predictions, draws: Draws = DRAWS
) -> dict[str, Interval | None]:
    """The intervals of several statistics of the same samples, each draw taken once for all."""
    values = {name: statistic(*samples) for name, statistic in statistics.items()}
    fixed = _not_redrawn(statistics)
    drawn = {n: s for n, s in statistics.items() if n not in fixed and values[n] is not None}
    redrawn = _redrawn(drawn, samples, draws) if drawn else {}
    found: dict[str, Interval | None] = {}
    for name, value in values.items():
        if value is None:
            found[name] = None
        elif name in fixed:
            found[name] = _of_rows(value, NOTHING, fixed[name].by_row(samples[0]), draws)
        else:
            found[name] = _interval(value, redrawn[name], draws)
    return found


def _not_redrawn(statistics: Mapping[str, Statistic]) -> dict[str, Metric]:
    """The metrics whose redrawn values would mislead."""
    return {n: s for n, s in statistics.items() if isinstance(s, Metric) and not s.redrawn}


def _of_rows(value: float, before: ByRow | None, after: ByRow | None, draws: Draws) -> Interval:
    """The interval of a mean over rows, or of a difference of two; either may be too high.

    As if two more examples had been off by one: few errors say little about their rate, and none
    says nothing (Agresti and Coull, 1998). And room for one on either side: counts come in steps.
    """
    if before is None or after is None:
        return Interval(value)
    values = after.values - before.values
    error = math.sqrt(values.var() / len(values) + 2 / len(values) ** 2)
    half = NormalDist().inv_cdf((1 + draws.level) / 2) * error + 1 / len(values)
    low, high = value - after.excess - half, value + before.excess + half
    return Interval(value, max(0.0, low) if before is NOTHING else low, high)


def _interval(value: float, values: Array, draws: Draws) -> Interval:
    tail = (1 - draws.level) / 2
    if not np.isfinite(value) or np.isnan(values).all():
        return Interval(value, value, value)  # an infinite loss stays so in almost every draw
    # A draw may leave the statistic undefined (no example of a kind); it says nothing either way.
    low, high = np.nanquantile(values, [tail, 1 - tail])
    return Interval(value, float(low), float(high))


def _redrawn(
    statistics: Mapping[str, Statistic], samples: Sequence[Predictions], draws: Draws
) -> dict[str, Array]:
    """The statistics of each draw; the rows drawn depend on the seed and the sizes only."""
    if not all(len(sample) for sample in samples):
        raise BadInput("there are no predictions to redraw")
    # What an entry of METRICS wraps may be a mean, of which all draws are taken at once.
    plain = {name: getattr(s, "measure", s) for name, s in statistics.items()}
    means = {
        n: np.asarray(s.each(samples[0]), float) for n, s in plain.items() if isinstance(s, Mean)
    }
    others = {name: s for name, s in statistics.items() if name not in means}
    found: dict[str, list[float]] = {name: [] for name in statistics}
    for block in _rows(samples, draws):
        for name, each in means.items():
            found[name] += each[block[0]].mean(axis=1).tolist()
        for rows in zip(*block, strict=True) if others else ():
            drawn = [sample.take(mine) for sample, mine in zip(samples, rows, strict=True)]
            for name, statistic in others.items():
                value = statistic(*drawn)
                found[name].append(np.nan if value is None else value)
    return {name: np.array(values) for name, values in found.items()}


def bootstrap_ranking(
    statistics: Mapping[str, Callable[[Ranking], float]],
    ranked: Callable[[Array, Array], Ranking],
    sizes: tuple[int, int],
    draws: Draws = DRAWS,
) -> dict[str, Interval]:
    """The intervals of what is read off one ranking, each draw ranked once for all.

    `ranked` makes it from the row numbers of two sets, which are redrawn apart.
    """
    found: dict[str, list[float]] = {name: [] for name in statistics}
    for block in _rows(tuple(map(range, sizes)), draws):
        for mine, theirs in zip(*block, strict=True):
            r = ranked(mine, theirs)
            for name, read in statistics.items():
                found[name].append(read(r))
    whole = ranked(*map(np.arange, sizes))
    return {
        name: _interval(read(whole), np.array(found[name]), draws)
        for name, read in statistics.items()
    }


def _rows(samples: Sequence[Sized], draws: Draws) -> Iterator[list[Array]]:
    """Blocks of draws: for each sample a matrix, one draw of its row numbers per row."""
    generator = np.random.default_rng(draws.seed)
    at_once = max(1, CELLS // sum(len(sample) for sample in samples))
    for start in range(0, draws.count, at_once):
        height = min(at_once, draws.count - start)
        yield [  # of an empty sample nothing is drawn
            generator.integers(max(1, len(s)), size=(height, len(s)), dtype=np.int32)
            for s in samples
        ]
