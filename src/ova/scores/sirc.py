"""A confidence, lowered where an inside-score says outside (SIRC; Xia and Bouganis, 2022).

The pair is max p, which has a known maximum of 1, and the nearest training feature, which needs no
particular head; on CLINC150 they told errors and outsiders best, so there the choice is not tested.
"""

from dataclasses import dataclass

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training


@dataclass(frozen=True, eq=False)
class Sirc:
    """-log((1 - max p) (1 + exp(-(s - a) / std))), s the nearest feature, a = mean - 3 std.

    The published score is minus what is inside the logarithm: the same order, but that rounds to 0
    for every row of which a network is sure.
    """

    a: float
    std: float

    def __call__(self, rows: Outputs) -> Array:
        s = rows.values["nearest"]
        return np.asarray(-(rows.log_doubt + np.logaddexp(0, -(s - self.a) / self.std)))


def fit(training: Training) -> Sirc:
    """Where the inside-score falls off, on held-out rows."""
    s = training.held["nearest"]
    std = float(s.std(dtype=np.float64))
    if not std > 0:
        raise BadInput("every held-out row is as far from its nearest training feature")
    return Sirc(float(s.mean(dtype=np.float64)) - 3 * std, std)


SCORES = {
    "sirc": Score(
        about="max p, lowered where the nearest training feature is far (SIRC)",
        needs=("features", "probabilities", "held"),
        joins=("nearest",),
        fit=fit,
        restore=Sirc,
    )
}
