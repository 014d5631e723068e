"""Metrics on random halves of a set's examples: the same halves for every model, so that they pair.

Around the value of the whole set, those of its halves vary as the values of new sets of its size
would. A difference of two models has the halves' differences, whatever file either was kept in.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from ova.metrics.metric import ByRow
from ova.metrics.ranking import rank
from ova.metrics.table import METRICS
from ova.predictions import Predictions, SetName
from ova.predictions.columns import Array

COUNT = 100  # halves; benchmarks/verdicts.py has what fewer and more would do
LEAST = 30  # examples; of fewer nothing can be told
CELLS = 1 << 22  # examples of halves in memory at a time


@dataclass(frozen=True, eq=False)
class Halved:
    """The values of a metric on the halves, and the most by which it is too high on average."""

    values: Array
    excess: float = 0.0


def halves(name: SetName, rows: int) -> Iterator[Array]:
    """Blocks of halves, one per row: 1 for the examples that are in it.

    They follow from the name and the number of rows; changed copies of the test set share theirs.
    """
    key = "shift" if name.shifted else str(name)
    bits = np.random.PCG64([rows, *key.encode()])
    words, at_once = -(-rows // 64), max(1, CELLS // rows)
    for start in range(0, COUNT, at_once):
        height = min(at_once, COUNT - start)
        raw = bits.random_raw((height, words)).view(np.uint8)
        yield np.unpackbits(raw, axis=1, count=rows)


def on_halves(name: SetName, values: Array) -> Array:
    """The mean of the values over each half."""
    blocks = halves(name, len(values))
    return np.concatenate([half @ values / half.sum(axis=1) for half in blocks])


def of_set(name: SetName, p: Predictions, metrics: Iterable[str]) -> dict[str, Halved]:
    """The metrics that are means over examples, on the halves of one set."""
    if len(p) < LEAST:
        return {}
    found = {metric: METRICS[metric].by_row(p) for metric in metrics}
    return {
        metric: Halved(on_halves(name, rows.values), rows.excess)
        for metric, rows in found.items()
        if rows is not None
    }


def auroc_of_sets(inside: tuple[SetName, Array], outside: tuple[SetName, Array]) -> Halved | None:
    """The AUROC by a score, both sets halved apart."""
    (one, p), (other, q) = inside, outside
    if min(len(p), len(q)) < LEAST:
        return None
    above, below = placements(p, q)
    means = on_halves(one, above.values) + on_halves(other, below.values)
    return Halved(means - above.values.mean())


def placements(inside: Array, outside: Array) -> tuple[ByRow, ByRow]:
    """For each inside score the share of outside ones below it, for each outside one that of inside above.

    Ties count half; the mean of either is the AUROC. DeLong, DeLong and Clarke-Pearson (1988).
    """
    r = rank(inside, outside)
    a, b = np.searchsorted(r.score, inside), np.searchsorted(r.score, outside)
    ins, outs = (np.append(0, counts).astype(np.float64) for counts in (r.inside, r.outside))
    above = (outs[a] + outs[a + 1]) / (2 * r.m)
    below = 1 - (ins[b] + ins[b + 1]) / (2 * r.n)
    return ByRow(above), ByRow(below)


def mean(parts: Iterable[Halved]) -> Halved:
    """The halves of a mean over several sets."""
    known = list(parts)
    values = np.mean([part.values for part in known], axis=0)
    return Halved(values, float(np.mean([part.excess for part in known])))
