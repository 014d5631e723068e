"""The energy of features cut off at a percentile of the activations (ReAct; Sun et al., 2021)."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array
from ova.scores import shaping
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training

PERCENTILE = 90  # the authors'


@dataclass(frozen=True, eq=False)
class CutOff:
    """log sum e^z of z = W min(f, c) + b."""

    weight: Array
    bias: Array
    cut: float

    def __call__(self, rows: Outputs) -> Array:
        return shaping.energy(
            np.minimum(rows.f, rows.f.dtype.type(self.cut)), self.weight, self.bias
        )


def fit(training: Training) -> CutOff:
    """The percentile of all activations of a sample of the training rows."""
    assert training.head is not None, "what the score needs was checked"
    cut = float(np.percentile(training.bank.sample(), PERCENTILE))
    return CutOff(training.head.weight, training.head.bias, cut)


SCORES = {
    "react": Score(
        about="energy of the features cut off at their 90th percentile; for rectified features",
        needs=("features", "head"),
        fit=fit,
        restore=CutOff,
        unless=shaping.signed,
    )
}
