"""A promise for every class of a model folder: its accuracy chosen, its thresholds fitted and read."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.modelfolder.promise import TARGETS, WORTH
from ova.posthoc.per_class import CLASS, EachClass, Thresholds
from ova.posthoc.threshold import Threshold, fit_threshold
from ova.predictions import Predictions


def promised(seen: Predictions, rows: Predictions, wanted: EachClass) -> Thresholds:
    """The thresholds fitted on `rows`; which accuracy, if none is asked for, is decided on `seen`."""
    accuracy = wanted.accuracy
    if accuracy is None:
        accuracy = target(seen, len(rows), wanted)
    return fit_threshold(rows, accuracy, wanted.certainty, per=CLASS, pool=wanted.pool)


def target(seen: Predictions, n: int, wanted: EachClass) -> float:
    """The highest accuracy for every class that lets enough be answered, as if there were n rows."""
    many = seen.take(np.tile(np.arange(len(seen)), max(1, round(n / len(seen)))))
    found = {
        a: fit_threshold(many, a, wanted.certainty, per=CLASS, pool=wanted.pool).answered
        for a in TARGETS
    }
    return next((a for a in TARGETS if found[a] >= WORTH), max(TARGETS, key=lambda a: found[a]))


def from_json(row: Mapping[str, Any], classes: int) -> Threshold | Thresholds:
    """The threshold of a model folder, or those of its classes."""
    if "parts" not in row:
        return Threshold.from_json(row)
    found = Thresholds.from_json(row)
    if found.per != CLASS or list(found.parts) != list(range(classes)):
        raise BadInput(f"these are not the thresholds of {classes} classes")
    return found
