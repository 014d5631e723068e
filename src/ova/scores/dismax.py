"""DisMax's score: the largest logit and the mean of all, less the entropy (Macedo et al., 2022)."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array, matrix
from ova.scores.outputs import Outputs
from ova.scores.score import Score


@dataclass(frozen=True)
class DisMax:
    """max_k z_k + mean_k z_k + sum_k p_k log p_k."""

    def __call__(self, rows: Outputs) -> Array:
        assert rows.said is not None, "what the score needs was checked"
        z = matrix(rows.logits, "logits").astype(np.float64)
        return np.asarray(z.max(1) + z.mean(1) - rows.said.entropy)


SCORES = {
    "dismax": Score(
        about="largest logit plus mean logit less entropy; made for heads of distances",
        needs=("logits",),
        fit=lambda _: DisMax(),
        restore=DisMax,
    )
}
