"""The metrics by name. A new one is an entry of `METRICS` or `DETECTION` in a file, and a line here."""

from collections.abc import Callable
from importlib import import_module

from ova.metrics.metric import Metric
from ova.metrics.ranking import Detection, rank
from ova.predictions import Predictions
from ova.scores import SCORES

_FILES = {  # name -> file, whose METRICS has the name
    "accuracy": "proper",
    "confidence": "proper",
    "nll": "proper",
    "nll_one_vs_all": "proper",
    "brier": "proper",
    "brier_one_vs_all": "proper",
    "ece": "calibration",
    "ece_equal_mass": "calibration",
    "ece_classwise": "calibration",
    "mce": "calibration",
    "rms_calibration_error": "calibration",
    "aurc": "selective",
}
_DETECTION_FILES = {  # name -> file, whose DETECTION has the name
    "auroc": "ranking",
    "aupr_inside": "ranking",
    "aupr_outside": "ranking",
    "fpr95": "ranking",
    "detection_error": "ranking",
}
METRICS: dict[str, Metric] = {
    name: import_module(f"ova.metrics.{file}").METRICS[name] for name, file in _FILES.items()
}
DETECTION: dict[str, Detection] = {
    name: import_module(f"ova.metrics.{file}").DETECTION[name]
    for name, file in _DETECTION_FILES.items()
}


def detection(name: str, score: str) -> Callable[[Predictions, Predictions], float | None]:
    """A detection metric by a score as a function of (inside, outside), for the bootstrap."""

    def measure(inside: Predictions, outside: Predictions) -> float | None:
        a, b = SCORES[score](inside), SCORES[score](outside)
        return None if a is None or b is None else DETECTION[name](rank(a, b))

    return measure
