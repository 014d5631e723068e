"""Energy plus nearest training feature, each standardised on held-out rows of the classes.

What tells outsiders is not what tells errors. The pair was picked on CLINC150, where it was best for a
user who must refuse both, so there the choice is not tested (`docs/scores.md`).
"""

from dataclasses import dataclass

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training

PARTS = ("energy", "nearest")


@dataclass(frozen=True, eq=False)
class StandardisedSum:
    """(energy - mean) / std + (nearest - mean) / std."""

    mean: Array  # of both on held-out rows
    std: Array

    def __call__(self, rows: Outputs) -> Array:
        both = np.stack([rows.values[name] for name in PARTS], axis=1)
        return np.asarray(((both - self.mean) / self.std).sum(1))


def fit(training: Training) -> StandardisedSum:
    """Means and standard deviations on held-out rows."""
    both = np.stack([training.held[name] for name in PARTS], axis=1)
    std = both.std(0, dtype=np.float64)
    if not (std > 0).all():
        raise BadInput("a part has the same value on every held-out row")
    return StandardisedSum(both.mean(0, dtype=np.float64), std)


def opposed(training: Training) -> str | None:
    """Softmax over distances leaves their size free: then the energy may be largest where nothing is near."""
    from scipy.stats import spearmanr

    both = [training.held[name] for name in PARTS]
    beyond_noise = 2 / np.sqrt(len(both[0]))
    if min(map(np.ptp, both)) > 0 and spearmanr(*both)[0] < -beyond_noise:
        return "on held-out rows the energy falls where the nearest training feature is nearer"
    return None


SCORES = {
    "energy_nearest": Score(
        about="energy plus nearest training feature, each standardised on held-out rows",
        needs=("features", "logits", "held"),
        joins=PARTS,
        fit=fit,
        restore=StandardisedSum,
        unless=opposed,
    )
}
