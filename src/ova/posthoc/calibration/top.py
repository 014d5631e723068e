"""Platt scaling of the top answer: a sigmoid of its logit."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from ova.errors import BadInput
from ova.posthoc.calibration.calibration import Calibration, short
from ova.posthoc.calibration.fitting import Floats, fit_slopes, smoothed
from ova.posthoc.calibration.scores import check, check_score, score, source_of
from ova.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Top(Calibration):
    """sigmoid(a s + b) with a > 0, s the logit of the top answer (Platt 1999); keeps the order.

    One-vs-all: s is the largest logit where it is known; everywhere else s = log(p / (1 - p)) of
    p = max p.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1, 4000)
    >>> right = rng.random(4000) < p**2
    >>> said = Predictions.from_probs(
    ...     np.stack([p, 1 - p], 1), 1 - right.astype(int), normalised=True)
    >>> fitted = Top.fit(said)
    >>> float(said.confidence.mean() - right.mean()) > 0.15
    True
    >>> bool(abs(fitted.apply(said).confidence.mean() - right.mean()) < 1e-3)
    True
    """

    method: ClassVar[str] = "top"
    fewest: ClassVar[int] = 20
    order: ClassVar[str] = "kept"

    a: float
    b: float
    score: str

    def __post_init__(self) -> None:
        super().__post_init__()
        check_score(self.score)
        if self.a <= 0:
            raise BadInput(f"the slope a must be positive, not {self.a}")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right, source = check(held, cls.fewest, cls.method), source_of(held)
        a, b = fit_slopes(score(held, source)[:, None], smoothed(right))
        return cls(n=len(held), normalised=held.normalised, a=short(a[0]), b=short(b), score=source)

    def confidence(self, p: Predictions) -> Floats:
        return np.asarray(expit(self.a * score(p, self.score) + self.b))


CALIBRATION = Top
