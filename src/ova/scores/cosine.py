"""The cosine to the nearest class mean of features of length one."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training


@dataclass(frozen=True, eq=False)
class Cosine:
    """max_k f.m_k, f and m_k of length one."""

    centres: Array  # K x D

    def __call__(self, rows: Outputs) -> Array:
        return np.asarray((rows.unit @ self.centres.T).max(1))


def fit(training: Training) -> Cosine:
    """The directions of the class means."""
    means = training.unit_moments.means
    length = np.linalg.norm(means, axis=1, keepdims=True)
    return Cosine(np.asarray(means / np.where(length > 0, length, 1), np.float32))


SCORES = {
    "cosine": Score(
        about="largest cosine to a class mean of the training features",
        needs=("features", "targets"),
        fit=fit,
        restore=Cosine,
    )
}
