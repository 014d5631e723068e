"""Isotonic regression: the rising step function nearest to the answers."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.optimize import isotonic_regression

from ova.errors import BadInput
from ova.posthoc.calibration.calibration import Calibration
from ova.posthoc.calibration.fitting import Floats
from ova.posthoc.calibration.scores import check, check_score, score, source_of
from ova.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Isotonic(Calibration):
    """The rising step function nearest to the answers (Zadrozny and Elkan 2002); makes ties.

    Between its knots it is drawn straight, outside them it is flat. Only weakly increasing: examples
    on one step become equal, so AUROC and thresholds can change.
    """

    method: ClassVar[str] = "isotonic"
    fewest: ClassVar[int] = 100
    order: ClassVar[str] = "weakly"

    x: tuple[float, ...]
    y: tuple[float, ...]
    score: str

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score(self.score)
        x, y = np.array(self.x, float), np.array(self.y, float)
        rising = len(x) == len(y) > 0 and (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()
        if not (rising and np.isfinite(x).all() and 0 <= y[0] <= y[-1] <= 1):
            raise BadInput("the knots of an isotonic calibration must rise, y within [0, 1]")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right, source = check(held, cls.fewest, cls.method), source_of(held)
        x, place = np.unique(score(held, source), return_inverse=True)
        count = np.bincount(place).astype(np.float64)
        y = isotonic_regression(np.bincount(place, right) / count, weights=count).x
        y = np.clip(y, 0, 1)
        # The two ends of each step say all.
        end = np.concatenate([[True], y[1:-1] != y[:-2], [True]])[: len(x)]
        end[:-1] |= y[:-1] != y[1:]
        knots = tuple(x[end].tolist()), tuple(y[end].tolist())
        return cls(n=len(held), normalised=held.normalised, x=knots[0], y=knots[1], score=source)

    def confidence(self, p: Predictions) -> Floats:
        return np.interp(score(p, self.score), self.x, self.y)


CALIBRATION = Isotonic
