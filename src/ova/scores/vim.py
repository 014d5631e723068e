"""The energy less what of the feature lies outside the principal space (ViM; Wang et al., 2022)."""

from dataclasses import dataclass

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training


@dataclass(frozen=True, eq=False)
class VirtualLogit:
    """log sum e^z - a |R^T (f - o)|."""

    origin: Array  # o: where an affine head gives no logits
    residual: Array  # R, D x (D - principal)
    scale: float  # a: makes the virtual logit as large as the largest real one

    def __call__(self, rows: Outputs) -> Array:
        return np.asarray(rows.energy - self.scale * self.length(rows.f))

    def length(self, f: Array) -> Array:
        """Of the features in the residual space."""
        return np.asarray(np.linalg.norm((f - self.origin) @ self.residual, axis=1))


def principal(width: int, n: int) -> int:
    """The dimensions of the principal space, as the authors choose them; half the rows where few."""
    return min(1000 if width >= 2048 else 512 if width >= 768 else width // 2, n // 2)


def fit(training: Training) -> VirtualLogit:
    """Eigenvectors about the origin; the scale from a sample of the training rows."""
    head = training.head
    assert head is not None, "what the score needs was checked"
    origin = -np.linalg.pinv(head.weight) @ head.bias
    _, vectors = np.linalg.eigh(training.moments.about(origin))  # ascending
    rest = len(origin) - principal(len(origin), training.n)
    fitted = VirtualLogit(origin, np.ascontiguousarray(vectors[:, :rest]), 1.0)
    sample = training.bank.sample()
    length = float(fitted.length(sample).mean())
    if not length > 1e-6 * float(np.abs(sample).mean(dtype=np.float64)):
        raise BadInput("no training feature has a part outside the principal space")
    largest = float(head(sample.astype(np.float64)).max(1).mean())
    return VirtualLogit(fitted.origin, fitted.residual, largest / length)


SCORES = {
    "vim": Score(
        about="energy less the scaled length of the feature outside the principal space",
        needs=("features", "logits", "head"),
        fit=fit,
        restore=VirtualLogit,
    )
}
