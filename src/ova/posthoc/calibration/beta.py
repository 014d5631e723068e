"""Beta calibration: a sigmoid of log p and log(1 - p), each with a slope of its own."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from ova.errors import BadInput
from ova.posthoc.calibration.calibration import Calibration, short
from ova.posthoc.calibration.fitting import Floats, fit_slopes, smoothed
from ova.posthoc.calibration.scores import check, logs
from ova.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Beta(Calibration):
    """sigmoid(a log p - b log(1 - p) + c) of p = max p, a, b > 0 (Kull et al. 2017); keeps the order."""

    method: ClassVar[str] = "beta"
    fewest: ClassVar[int] = 30
    order: ClassVar[str] = "kept"

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.a <= 0 or self.b <= 0:
            raise BadInput(f"a and b must be positive, not {self.a} and {self.b}")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right = check(held, cls.fewest, cls.method)
        sure, unsure = logs(held.confidence)
        (a, b), c = fit_slopes(np.stack([sure, -unsure], 1), smoothed(right))
        return cls(n=len(held), normalised=held.normalised, a=short(a), b=short(b), c=short(c))

    def confidence(self, p: Predictions) -> Floats:
        sure, unsure = logs(p.confidence)
        return np.asarray(expit(self.a * sure - self.b * unsure + self.c))


CALIBRATION = Beta
