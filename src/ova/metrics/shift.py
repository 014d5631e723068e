"""Metrics under shift: a table by type and severity, a box per severity, the mean of means."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

Table = Mapping[tuple[str, int], float]  # (type, severity) -> value


@dataclass(frozen=True)
class Box:
    """Mean, median, quartiles (linear between ranks) and extremes over types."""

    mean: float
    minimum: float
    lower_quartile: float
    median: float
    upper_quartile: float
    maximum: float
    types: int


def boxes(table: Table) -> dict[int, Box]:
    """The box of each severity, over its types: the paper's figures F2 and F3.

    >>> boxes({("fog", 1): 0.5, ("snow", 1): 0.7})[1].median
    0.6
    """
    found: dict[int, list[float]] = {}
    for (_, severity), value in sorted(table.items()):
        found.setdefault(severity, []).append(value)
    return {severity: _box(values) for severity, values in sorted(found.items())}


def mean_over_shift(table: Table) -> float:
    """Mean over types at each severity, then over severities. Hendrycks and Dietterich (2019).

    >>> mean_over_shift({("fog", 1): 0.5, ("snow", 1): 0.75, ("fog", 2): 0.0})
    0.3125
    """
    return float(np.mean([box.mean for box in boxes(table).values()]))


def _box(values: list[float]) -> Box:
    low, q1, middle, q3, high = np.quantile(values, [0, 0.25, 0.5, 0.75, 1]).tolist()
    return Box(float(np.mean(values)), low, q1, middle, q3, high, len(values))
