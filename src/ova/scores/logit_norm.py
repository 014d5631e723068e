"""The largest logit over the p-norm of all of them: for errors rather than outsiders (Cattelan and Silva, 2024)."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array, matrix
from ova.scores.outputs import Outputs
from ova.scores.score import Score

POWER = 5  # the middle of the authors' grid of 0 to 10: they choose it on labelled held-out rows


@dataclass(frozen=True)
class LogitOverNorm:
    """max_k (z_k - mean z) / |z - mean z|_p."""

    power: int = POWER

    def __call__(self, rows: Outputs) -> Array:
        z = matrix(rows.logits, "logits").astype(np.float64)
        z -= z.mean(1, keepdims=True)
        largest = np.abs(z).max(1, keepdims=True)
        z /= np.where(largest > 0, largest, 1)  # powers of large logits would overflow
        norm = (np.abs(z) ** self.power).sum(1) ** (1 / self.power)
        return np.asarray(z.max(1) / np.where(norm > 0, norm, 1))


SCORES = {
    "logit_norm": Score(
        about="largest logit over the 5-norm of the centred logits; for errors, not outsiders",
        needs=("logits",),
        fit=lambda _: LogitOverNorm(),
        restore=LogitOverNorm,
    )
}
