"""The energy of features scaled by how much their largest part outweighs the rest (SCALE; Xu et al., 2024)."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array
from ova.scores import shaping
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training

PERCENTILE = 85  # the authors'


@dataclass(frozen=True, eq=False)
class Scaled:
    """log sum e^z of z = W f exp(sum f / sum of its largest 15 %) + b."""

    weight: Array
    bias: Array
    percentile: int = PERCENTILE

    def __call__(self, rows: Outputs) -> Array:
        f = rows.f
        top = max(1, f.shape[1] - round(f.shape[1] * self.percentile / 100))
        part = np.partition(f, -top, axis=1)[:, -top:].sum(1, dtype=np.float64)
        whole = f.sum(1, dtype=np.float64)
        ratio = np.divide(whole, part, out=np.ones_like(whole), where=part > 0)
        # In float64: features may grow by up to e to the number of times that 15 % go into the whole.
        return shaping.energy(f * np.exp(ratio)[:, None], self.weight, self.bias)


def fit(training: Training) -> Scaled:
    """Nothing to fit but the head."""
    assert training.head is not None, "what the score needs was checked"
    return Scaled(training.head.weight, training.head.bias)


SCORES = {
    "scale": Score(
        about="energy of the features, scaled by sum f over that of the top 15 %; for rectified features",
        needs=("features", "head"),
        fit=fit,
        restore=Scaled,
        unless=shaping.signed,
    )
}
