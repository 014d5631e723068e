"""Metrics of predictions; `docs/metrics.md` has the formulas and which way is better.

Each is a function of arrays too, under its name: `ova.metrics.ece(y_true, probs)`.
"""

from typing import Any

from ova.metrics.resampling import Draws as Draws
from ova.metrics.resampling import Interval as Interval
from ova.metrics.resampling import bootstrap as bootstrap
from ova.metrics.resampling import paired_difference as paired_difference
from ova.metrics.table import DETECTION as DETECTION
from ova.metrics.table import METRICS as METRICS
from ova.metrics.table import detection as detection


def __getattr__(name: str) -> Any:
    if name in METRICS or name in DETECTION:
        from ova.metrics.functions import function

        return function(name)
    if name == "Accumulator":
        from ova.metrics.streaming import Accumulator

        return Accumulator
    raise AttributeError(f"module 'ova.metrics' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), "Accumulator", *METRICS, *DETECTION])
