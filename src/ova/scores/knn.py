"""The distance to the nearest training features of length one, negated (KNN; Sun et al., 2022)."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training

K = 50  # the authors' for CIFAR-10


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Minus the distance to the k-th nearest of the bank; `among` are searched, for all who ask."""

    bank: Array  # of length one
    row: Array  # the numbers of the training rows
    k: int
    among: int

    def __call__(self, rows: Outputs) -> Array:
        return np.asarray(-self.search(rows)[0][:, self.k - 1])

    def near(self, unit: Array, count: int) -> tuple[Array, Array]:
        """Distances to the nearest of the bank, ascending, and their places in it."""
        from ova.scores.neighbours import nearest

        return nearest(unit, self.bank, count)

    def search(self, rows: Outputs) -> tuple[Array, Array]:
        """Distances to the nearest training rows, ascending, and the numbers of these rows."""
        # Several scores look for the same neighbours of the same rows: the first one searches.
        key = f"neighbours {id(self.bank)}"
        if key not in rows.shared:
            distance, place = self.near(rows.unit, self.among)
            rows.shared[key] = distance, self.row[place]
        found: tuple[Array, Array] = rows.shared[key]
        return found


def fit(training: Training, k: int) -> Neighbours:
    """The bank as it is; no more neighbours than half the rows of the median class."""
    among = min(K, training.few, len(training.bank["row"]))
    return Neighbours(training.bank["unit"], training.bank["row"], min(k, among), among)


SCORES = {
    "nearest": Score(
        about="minus the distance to the nearest training feature, all of length one",
        needs=("features",),
        fit=partial(fit, k=1),
        restore=Neighbours,
    ),
    "knn": Score(
        about="minus the distance to the k-th nearest training feature, all of length one; k at most 50",
        needs=("features",),
        fit=partial(fit, k=K),
        restore=Neighbours,
    ),
}
