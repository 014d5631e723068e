"""The energy, guided by that of the nearest training features (NNGuide; Park et al., 2023)."""

from dataclasses import dataclass

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training

K = 10  # the authors' for ImageNet


@dataclass(frozen=True, eq=False)
class Guided:
    """energy(f) times the mean of the k largest energy_i cos(f, f_i) over training features f_i."""

    bank: Array  # training features of length one, times their energies
    k: int

    def __call__(self, rows: Outputs) -> Array:
        from ova.scores.neighbours import largest

        best, _ = largest(rows.unit, self.bank, self.k)
        return np.asarray(rows.energy * best.mean(1, dtype=np.float64))


def fit(training: Training) -> Guided:
    """The bank, weighted; energies below zero would turn the product round."""
    energy = training.bank["energy"]
    if not (energy > 0).all():
        raise BadInput(
            "a training row has a negative energy, as heads of distances and of yes-or-no answers give"
        )
    bank = np.asarray(training.bank["unit"] * energy[:, None], np.float32)
    return Guided(bank, min(K, training.few, len(bank)))


SCORES = {
    "nnguide": Score(
        about="energy times the mean similarity to 10 training features, weighted by their energy",
        needs=("features", "logits"),
        fit=fit,
        restore=Guided,
    )
}
