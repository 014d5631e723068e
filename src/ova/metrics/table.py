"""The metrics by name. A new one is a file with an entry in its `METRICS` or `DETECTION`, and a line here."""

from collections.abc import Callable
from importlib import import_module

from ova.metrics.metric import Metric
from ova.metrics.ranking import Detection, rank
from ova.predictions import Predictions
from ova.scores import scores_of

_FILES = (  # each has entries in its METRICS, or DETECTION, or both
    "proper",
    "calibration",
    "selective",
    "ranking",
)
_MODULES = [import_module(f"ova.metrics.{file}") for file in _FILES]
METRICS: dict[str, Metric] = {
    name: metric for module in _MODULES for name, metric in getattr(module, "METRICS", {}).items()
}
DETECTION: dict[str, Detection] = {
    name: metric for module in _MODULES for name, metric in getattr(module, "DETECTION", {}).items()
}


def detection(name: str, score: str) -> Callable[[Predictions, Predictions], float | None]:
    """A detection metric by a score as a function of (inside, outside), for the bootstrap."""

    def measure(inside: Predictions, outside: Predictions) -> float | None:
        a, b = (scores_of(p).get(score) for p in (inside, outside))
        return None if a is None or b is None else DETECTION[name](rank(a, b))

    return measure
