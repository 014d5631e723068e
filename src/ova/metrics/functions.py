"""Every metric as a function of plain arrays, in the manner of scikit-learn's: `ova.metrics.ece(y, p)`."""

from collections.abc import Callable
from functools import cache
from typing import Any

from ova.metrics.arrays import Read, array, predictions
from ova.metrics.metric import Metric
from ova.metrics.ranking import Detection, rank
from ova.metrics.table import DETECTION, METRICS

Function = Callable[..., float | None]


@cache
def function(name: str) -> Function:
    """The function of a metric or a detection metric; a KeyError for any other name."""
    return of_set(name, METRICS[name]) if name in METRICS else of_two_sets(name, DETECTION[name])


def of_set(name: str, metric: Metric) -> Function:
    """A metric of targets and probabilities."""

    def measure(
        y_true: Any, probs: Any = None, *, labels: Any = None, normalised: bool = True
    ) -> float | None:
        return metric(predictions(y_true, probs, Read(labels, normalised)))

    more = "" if metric.better == "neither" else f" Better: {metric.better}."
    return called(
        measure,
        name,
        f"""{metric.about[:1].upper()}{metric.about[1:]}.{more}

        `y_true` are targets, `probs` N x K probabilities (or p of class 1), or the first alone is
        `Predictions` or a data frame. `labels` names the columns where targets are names;
        one-vs-all probabilities say normalised=False. None where the predictions do not determine it.
        """,
    )


def of_two_sets(name: str, metric: Detection) -> Function:
    """A metric of how well a score, higher inside, tells two sets."""

    def measure(inside: Any, outside: Any) -> float:
        return metric(rank(array(inside), array(outside)))

    about = f"{name} of a score, higher for inside, by its values inside and outside."
    return called(measure, name, about)


def called(function: Function, name: str, about: str) -> Function:
    """The function under the name of the metric."""
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "ova.metrics", about
    return function
