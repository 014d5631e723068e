"""Folds of few rows: all are trained on, and each is judged by a head that has not seen its fold."""

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from ova.errors import BadInput
from ova.posthoc.independent import Rows, numbered

FEW = 30  # rows of the median class below which none is held out, unless a promise is asked for
FOLDS = 10
RULE = "10 folds, whole groups, a class in turns"  # part of what makes data other data


@dataclass(frozen=True, eq=False)
class Folds:
    """The fold of each row to train on, and of each row that is judged: one of every group."""

    trained: Tensor
    judged: Tensor
    sets: tuple[str, ...]  # the sets that hold judged rows; others were never trained on

    def __len__(self) -> int:
        return int(self.trained.max()) + 1


def few(labels: Sequence[str]) -> bool:
    """Whether the median class has so few rows that holding some of them out costs more than it tells.

    >>> few(["a"] * 29 + ["b"] * 10), few(["a"] * 30 + ["b"] * 31 + ["c"])
    (True, False)
    """
    return bool(labels) and float(np.median([*Counter(labels).values()])) < FEW


def dealt(groups: Sequence[Hashable], labels: Sequence[str], seed: int) -> Rows:
    """The fold of each row: groups stay whole, and those of a class are dealt in turns, by lot.

    So a class of two groups or more has a row to learn from beside every fold. The label of a group
    is that of its first row.
    """
    unit = numbered(groups)
    _, first = np.unique(unit, return_index=True)
    count = len(first)
    if count < 2:
        raise BadInput(f"{count} independent rows are too few: cross-fitting needs 2 at least")
    lot = np.random.default_rng(seed).permutation(count)
    turn = lot[np.argsort(numbered(labels)[first][lot], kind="stable")]
    fold = np.empty(count, np.int64)
    fold[turn] = np.arange(count) % min(FOLDS, count)
    return fold[unit]
