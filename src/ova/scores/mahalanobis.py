"""The Mahalanobis distance to the nearest class, also less that to all rows, negated.

MDS: Lee et al. (2018). RMDS: Ren et al. (2021). On features of length one ("Mahalanobis++"):
Müller and Hein (2025). Covariances are shrunk, so that fewer rows than features are enough.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from ova.predictions.columns import Array
from ova.scores.moments import shrunk, whitening
from ova.scores.outputs import Outputs
from ova.scores.score import Score
from ova.scores.training import Training


@dataclass(frozen=True, eq=False)
class Mahalanobis:
    """-min_k |A (f - m_k)|^2, plus |B (f - m)|^2 where there is a B."""

    mean: Array  # m, of all rows
    centres: Array  # A (m_k - m), K x D
    within: Array  # A, D x D: whitens the covariance within classes
    overall: Array  # B, whitens the covariance of all rows; none for the plain distance
    unit: bool  # of features at length one

    def __call__(self, rows: Outputs) -> Array:
        f = (rows.unit if self.unit else rows.f) - self.mean
        g = f @ self.within.T
        squares = (self.centres**2).sum(1) - 2 * (g @ self.centres.T)
        distance = (g * g).sum(1) + squares.min(1)
        if not len(self.overall):
            return np.asarray(-distance)
        h = f @ self.overall.T
        return np.asarray((h * h).sum(1) - distance)


def fit(training: Training, *, relative: bool, unit: bool) -> Mahalanobis:
    """From the sums over all training rows, in float64."""
    m = training.unit_moments if unit else training.moments
    covariance = shrunk(m.within, m.n)
    within = whitening(covariance)
    # What was added within classes is added here too: two shrinkages of their own would make
    # directions that no training row has seen count for one distance and not for the other.
    between = m.covariance - m.within
    overall = whitening(covariance + between) if relative else np.zeros((0, len(within)))
    return Mahalanobis(m.mean, (m.means - m.mean) @ within.T, within, overall, unit)


def _score(about: str, *, relative: bool, unit: bool) -> Score:
    return Score(
        about=about + (", features of length one" if unit else ""),
        needs=("features", "targets"),
        fit=partial(fit, relative=relative, unit=unit),
        restore=Mahalanobis,
    )


MDS = "minus the squared Mahalanobis distance to the nearest class"
SCORES = {
    "mds": _score(MDS, relative=False, unit=False),
    "mds_unit": _score(MDS, relative=False, unit=True),
    "rmds": _score(f"{MDS}, less that to all rows", relative=True, unit=False),
    "rmds_unit": _score(f"{MDS}, less that to all rows", relative=True, unit=True),
}
