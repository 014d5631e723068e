"""Temperature scaling: all logits divided by one number."""

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from scipy.special import expit

from ova.errors import BadInput
from ova.posthoc.calibration.calibration import Calibration, short
from ova.posthoc.calibration.fitting import (
    Floats,
    blocks,
    fit_slopes,
    fit_temperature,
    log_of,
    smoothed,
    softened,
)
from ova.posthoc.calibration.scores import LOGIT, check, numbers, score
from ova.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Temperature(Calibration):
    """All logits divided by one temperature T (Guo et al. 2017).

    Softmax: max_k softmax(log p / T)_k, T with the least negative log-likelihood; needs the matrix
    of probabilities, and may change the order of examples. One-vs-all: sigmoid(logit(max p) / T),
    fitted on "is the top answer right?".

    >>> p = np.tile([[0.99, 0.01]], (100, 1))
    >>> y = np.arange(100) % 4 == 0
    >>> said = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
    >>> Temperature.fit(said).apply(said).confidence[0].round(3)
    np.float64(0.75)
    """

    method: ClassVar[str] = "temperature"
    fewest: ClassVar[int] = 10
    order: ClassVar[str] = "may change"

    temperature: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise BadInput(f"a temperature is positive, not {self.temperature}")

    @classmethod
    def keeps_order(cls, normalised: bool | None) -> bool:
        """For one-vs-all, of which each logit is divided alone."""
        return normalised is False

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right = check(held, cls.fewest, cls.method)
        if held.normalised is False:
            s = score(held, LOGIT)
            temperature = 1 / fit_slopes(s[:, None], smoothed(right), intercept=False)[0][0]
        else:
            known = held.target >= 0  # an example of none of the classes has no log p
            temperature = fit_temperature(_matrix(held)[known], held.target[known])
        return cls(n=len(held), normalised=held.normalised, temperature=short(temperature))

    def confidence(self, p: Predictions) -> Floats:
        if p.normalised is False:
            return np.asarray(expit(score(p, LOGIT) / self.temperature))
        probs = _matrix(p)
        found = [softened(log_of(probs[r]), 1 / self.temperature).max(1) for r in blocks(probs)]
        return np.concatenate(found) if found else np.empty(0)


def _matrix(p: Predictions) -> Floats:
    if p.probs is None:
        raise BadInput(
            "temperature divides all logits of an example, so it needs the matrix of probabilities "
            "(`probs`), which these predictions do not have; top, beta and isotonic need only the "
            "confidences"
        )
    numbers(p.probs.min(1), "probs")
    return p.probs


CALIBRATION = Temperature
