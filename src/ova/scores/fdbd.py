"""The mean distance to the decision boundaries, over that to the mean feature (fDBD; Liu and Qin, 2024)."""

from dataclasses import dataclass

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, matrix
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training


@dataclass(frozen=True, eq=False)
class BoundaryDistance:
    """mean_k (z_1 - z_k) / |w_1 - w_k|, divided by |f - m|; z_1 is the largest logit."""

    mean: Array  # m
    apart: Array  # 1 / |w_j - w_k|, K x K; 0 where two classes have the same weights

    def __call__(self, rows: Outputs) -> Array:
        z = matrix(rows.logits, "logits").astype(
            np.float64
        )  # their differences may be larger still
        first = z.argmax(1)
        ahead = np.take_along_axis(z, first[:, None], 1) - z
        distance = np.einsum("nk,nk->n", ahead, self.apart[first], dtype=np.float64)
        away = np.linalg.norm(rows.f - self.mean, axis=1)
        return np.asarray(distance / (z.shape[1] - 1) / np.maximum(away, np.finfo(np.float32).tiny))


def fit(training: Training) -> BoundaryDistance:
    """The distances between the weights of all pairs of classes."""
    from scipy.spatial.distance import cdist

    assert training.head is not None, "what the score needs was checked"
    if len(training.head.bias) < 2:
        raise BadInput("one class has no boundary to another")
    apart = cdist(training.head.weight, training.head.weight)
    inverse = np.divide(1, apart, out=np.zeros_like(apart), where=apart > 0)
    return BoundaryDistance(training.moments.mean, inverse)


SCORES = {
    "fdbd": Score(
        about="mean distance to the decision boundaries over that to the mean feature",
        needs=("features", "logits", "head"),
        fit=fit,
        restore=BoundaryDistance,
    )
}
