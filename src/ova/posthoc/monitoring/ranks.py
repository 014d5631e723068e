"""Conformal p-values of a stream: each score among those before it, ties by lot, O(log n) a row.

Of exchangeable scores they are independent and uniform (docs/monitor.md).
"""

from typing import Any

import numpy as np

from ova.posthoc.certificates import Counts, Floats
from ova.predictions.parallel import compiled


class Ranks:
    """All scores so far, as sorted runs of ever smaller size; they begin as the calibration scores.

    A run has each score once, with how many there are up to it: scores of few digits take no more
    memory however many come.

    >>> ranks = Ranks(np.array([1.0, 2.0, 3.0]))
    >>> ranks.p_values(np.array([2.5, 0.0]), np.array([0.5, 0.5]))
    array([0.625, 0.1  ])
    """

    def __init__(self, calibration: Floats) -> None:
        self.runs: list[tuple[Floats, Counts]] = []
        self.n = 0
        if len(calibration):
            self._add(*np.unique(calibration, return_counts=True))

    def p_values(self, s: Floats, lots: Floats) -> Floats:
        """(#{before: < s} + lot (#{before: = s} + 1)) / (number before + 1), one score after another."""
        if not len(s):
            return np.empty(0)
        values, place = np.unique(s, return_inverse=True)
        less, equal = before(place.astype(np.int64), len(values))
        for run, up_to in self.runs:
            lower = up_to[np.searchsorted(run, values, side="left")]
            alike = up_to[np.searchsorted(run, values, side="right")] - lower
            less += lower[place]
            equal += alike[place]
        p: Floats = (less + lots * (equal + 1)) / (self.n + np.arange(1, len(s) + 1))
        self._add(values, np.bincount(place))
        return p

    def _add(self, values: Floats, counts: Counts) -> None:
        """Put a sorted run beside the others; those of like size become one."""
        self.n += int(counts.sum())
        self.runs.append((values, np.concatenate([[0], np.cumsum(counts)])))
        while len(self.runs) > 1 and len(self.runs[-2][0]) < 2 * len(self.runs[-1][0]):
            last = self.runs.pop()
            self.runs.append(merged(self.runs.pop(), last))


def merged(one: tuple[Floats, Counts], other: tuple[Floats, Counts]) -> tuple[Floats, Counts]:
    """Two runs as one.

    >>> merged((np.array([1.0, 2.0]), np.array([0, 1, 3])), (np.array([2.0]), np.array([0, 4])))
    (array([1., 2.]), array([0, 1, 7]))
    """
    values = np.concatenate([one[0], other[0]])
    order = np.argsort(values, kind="stable")  # a sort that knows runs merges them
    values = values[order]
    last = np.append(values[1:] != values[:-1], True)
    up_to = np.cumsum(np.concatenate([np.diff(one[1]), np.diff(other[1])])[order])
    return values[last], np.concatenate([[0], up_to[last]])


def before(place: Counts, size: int) -> tuple[Counts, Counts]:
    """Of whole numbers below `size`, how many before each are less, and how many are equal.

    >>> before(np.array([1, 0, 1, 2]), 3)
    (array([0, 0, 1, 3]), array([0, 0, 1, 0]))
    """
    less, equal = np.empty(len(place), np.int64), np.empty(len(place), np.int64)
    _before(place, np.zeros(size + 1, np.int64), np.zeros(size, np.int64), less, equal)
    return less, equal


@compiled
def _before(place: Any, tree: Any, same: Any, less: Any, equal: Any) -> None:
    """The same by a tree of partial sums (Fenwick, 1994)."""
    for i in range(len(place)):
        k, total = place[i], 0
        while k > 0:
            total += tree[k]
            k -= k & -k
        less[i], equal[i] = total, same[place[i]]
        same[place[i]] += 1
        k = place[i] + 1
        while k < len(tree):
            tree[k] += 1
            k += k & -k
