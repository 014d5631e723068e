"""What a metric is: a number about one set of predictions, with its direction and parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ova.predictions import Predictions
from ova.predictions.columns import Array


@dataclass(frozen=True)
class Mean:
    """The statistic that is the mean of one value per example; all draws are averaged at once."""

    each: Callable[[Predictions], Array | None]  # None: the predictions do not have the values

    def __call__(self, p: Predictions) -> float | None:
        values = self.each(p)
        return None if values is None else float(np.mean(values, dtype=np.float64))


@dataclass(frozen=True, eq=False)
class ByRow:
    """A metric to first order: one value per example, of which it is the mean."""

    values: Array
    excess: float = (
        0.0  # at most so much larger than the truth is the metric, averaged over samples
    )


@dataclass(frozen=True)
class Metric:
    """A number about one set of predictions; None where the predictions do not determine it."""

    measure: Callable[[Predictions], float | None]
    better: str  # higher, lower, or neither
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outside: bool = False  # has a meaning for examples of none of the classes
    calibrated: bool = False  # changes with a calibration; the rest is of answers or all K p
    redrawn: bool = True  # whether redrawn examples tell how far the value may be from the truth
    rows: Callable[[Predictions], ByRow] | None = None  # what a mean has by itself

    def __call__(self, p: Predictions) -> float | None:
        return self.measure(p)

    def by_row(self, p: Predictions) -> ByRow | None:
        """The metric as a mean over examples; None if it is not one, or not determined."""
        if self.rows is not None:
            return self.rows(p)
        values = self.measure.each(p) if isinstance(self.measure, Mean) else None
        return None if values is None else ByRow(np.asarray(values, np.float64))
