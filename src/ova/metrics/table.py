"""The metrics by name: what each says, which way is better, and with which parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ova.metrics import calibration, proper, ranking, selective
from ova.metrics.calibration import BINS, Reliability, reliability
from ova.metrics.ranking import Ranking, rank
from ova.metrics.resampling import Mean
from ova.predictions import Predictions
from ova.scores import SCORES


@dataclass(frozen=True)
class Metric:
    """A number about one set of predictions; None where the predictions do not determine it."""

    measure: Callable[[Predictions], float | None]
    better: str  # higher, lower, or neither
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    outside: bool = False  # has a meaning for examples of none of the classes

    def __call__(self, p: Predictions) -> float | None:
        return self.measure(p)


@dataclass(frozen=True)
class Detection:
    """A number about scores of two sets, inside and outside, read off their ranking."""

    measure: Callable[[Ranking], float]
    better: str
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, r: Ranking) -> float:
        return self.measure(r)


def _off(read: Callable[[Reliability], float], rule: str) -> Callable[[Predictions], float]:
    return lambda p: read(reliability(p, BINS, rule))


def detection(name: str, score: str) -> Callable[[Predictions, Predictions], float | None]:
    """A detection metric by a score as a function of (inside, outside), for the bootstrap."""

    def measure(inside: Predictions, outside: Predictions) -> float | None:
        a, b = SCORES[score](inside), SCORES[score](outside)
        return None if a is None or b is None else DETECTION[name](rank(a, b))

    return measure


_WIDTH = {"bins": BINS, "rule": "equal-width"}
_MASS = {"bins": BINS, "rule": "equal-mass"}

METRICS: dict[str, Metric] = {
    "accuracy": Metric(Mean(proper.right), "higher", "share of right answers"),
    "confidence": Metric(
        Mean(proper.confidence), "neither", "mean of max p, never renormalised", outside=True
    ),
    "nll": Metric(
        Mean(proper.log_loss), "lower", "mean of -log p of the target; probabilities that sum to 1"
    ),
    "nll_one_vs_all": Metric(
        Mean(proper.one_vs_all_log_loss),
        "lower",
        "mean negative log-likelihood of K yes-or-no answers; one-vs-all",
        outside=True,
    ),
    "brier": Metric(
        Mean(proper.brier), "lower", "mean squared error of the K-vector that sums to 1"
    ),
    "brier_one_vs_all": Metric(
        Mean(proper.one_vs_all_brier),
        "lower",
        "mean of the K yes-or-no Brier scores, added up; one-vs-all",
        outside=True,
    ),
    "ece": Metric(
        _off(calibration.expected_error, "equal-width"),
        "lower",
        "expected calibration error, equal-width bins",
        _WIDTH,
    ),
    "ece_equal_mass": Metric(
        _off(calibration.expected_error, "equal-mass"),
        "lower",
        "expected calibration error, bins of equal counts",
        _MASS,
    ),
    "ece_classwise": Metric(
        calibration.classwise_error, "lower", "mean calibration error of each class's p", _WIDTH
    ),
    "mce": Metric(
        _off(calibration.largest_error, "equal-width"),
        "lower",
        "largest gap between accuracy and confidence in a bin",
        _WIDTH,
    ),
    "rms_calibration_error": Metric(
        _off(calibration.rms_error, "equal-width"),
        "lower",
        "root mean square gap between accuracy and confidence",
        _WIDTH,
    ),
    "aurc": Metric(
        lambda p: selective.aurc(selective.certainty(p)),
        "lower",
        "area under risk against coverage, by confidence",
    ),
}

DETECTION: dict[str, Detection] = {
    "auroc": Detection(ranking.auroc, "higher", "P(inside scores above outside), ties half; exact"),
    "aupr_inside": Detection(
        ranking.aupr_inside, "higher", "average precision, inside positive", {"positive": "inside"}
    ),
    "aupr_outside": Detection(
        ranking.aupr_outside,
        "higher",
        "average precision, outside positive (the paper's AUPRC)",
        {"positive": "outside"},
    ),
    "fpr95": Detection(
        ranking.fpr_at_tpr, "lower", "outside accepted where 95 % of inside is", {"tpr": 0.95}
    ),
    "detection_error": Detection(
        ranking.detection_error, "lower", "smallest mean of the two error rates", {"prior": 0.5}
    ),
}
