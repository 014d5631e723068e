"""The calibrated confidence of a model folder's answers, and the threshold on its scale."""

import math
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from ova.errors import BadInput
from ova.files import Row, read_object
from ova.metrics.choice import PLAIN
from ova.nn.formulations import Formulation
from ova.posthoc.calibration import Top, from_json
from ova.posthoc.calibration.scores import LOGIT, MAX_LOGIT
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import Predictions

FARTHEST = 1e5  # logits beyond this are not looked for


def fit(rows: Predictions) -> Top | str:
    """The calibration of held-out rows, or the reason why there is none.

    Only one that keeps the order will do: then the same inputs are above the threshold before and
    after it, so that it may be fitted on the very rows that the promise rests on.
    """
    try:
        return Top.fit(rows)
    except BadInput as error:  # few rows, or no error among them, are no reason to lose a model
        return str(error)


def to_json(found: Top | str) -> Row:
    """What is kept of a calibration, or of the reason why there is none."""
    return {"method": Top.method, "why_not": found} if isinstance(found, str) else found.to_json()


def read(path: Path, form: Formulation) -> Top | str:
    """The calibration in a model folder, or the reason why there is none."""
    row = read_object(path)
    if "why_not" in row:
        return str(row["why_not"])
    found, score = from_json(row), LOGIT if form.normalised else MAX_LOGIT
    if not isinstance(found, Top) or found.score != score:
        raise BadInput(f"{path}: a model is calibrated by 'top' of its {score!r}, not by {row}")
    return found


def score_of(form: Formulation, z: Tensor, k: Tensor) -> Tensor:
    """The score s of class k of each row: its logit; for softmax log(p_k / (1 - p_k)), exactly.

    >>> from ova.nn.formulations import FORMULATIONS
    >>> score_of(FORMULATIONS["softmax"], torch.tensor([[100.0, 0.0, 0.0]]), torch.tensor([0]))
    tensor([99.3069])
    """
    place = k[..., None]
    own = z.gather(-1, place)[..., 0]
    if not form.normalised:
        return own
    return own - z.scatter(-1, place, -math.inf).logsumexp(-1)


def confidence_of(calibration: Top | str, form: Formulation, z: Tensor, k: Tensor) -> Tensor:
    """sigmoid(a s + b) of class k of each row, or p_k where nothing was calibrated.

    The map is of the top answer. For another class it is the confidence that a top answer with its
    score would have, so that the two can be compared.
    """
    if isinstance(calibration, str):
        return form.probs(z).gather(-1, k[..., None])[..., 0]
    return torch.sigmoid(calibration.a * score_of(form, z, k) + calibration.b)


def shown(
    threshold: Threshold | Thresholds, calibration: Top | str, form: Formulation, score: str
) -> Threshold | Thresholds:
    """The threshold as users meet it: of max p on the scale of the confidences, else of the score."""
    if score != PLAIN:
        return threshold
    if isinstance(threshold, Thresholds):
        parts = {k: on_scale(part, calibration, form) for k, part in threshold.parts.items()}
        return replace(threshold, parts=parts)
    return on_scale(threshold, calibration, form)


def on_scale(threshold: Threshold, calibration: Top | str, form: Formulation) -> Threshold:
    """The same threshold and promise, its value on the scale of the calibrated confidences."""
    if isinstance(calibration, str) or not math.isfinite(threshold.value):
        return threshold
    s = logit_of(form, threshold.value)
    value = torch.tensor(calibration.a * s + calibration.b, dtype=torch.float64).sigmoid()
    return replace(threshold, value=float(value))


def logit_of(form: Formulation, p: float) -> float:
    """The score at which a top answer has the probability p; found by halving, for any link.

    >>> from ova.nn.formulations import FORMULATIONS
    >>> round(logit_of(FORMULATIONS["ova"], 0.75), 6)  # log 3
    1.098612
    """
    if form.normalised:
        return math.log(p / (1 - p)) if 0 < p < 1 else math.copysign(FARTHEST, p - 0.5)
    low, high = -FARTHEST, FARTHEST
    while (middle := (low + high) / 2) not in (low, high):
        here = float(form.probs(torch.tensor([[middle]], dtype=torch.float64)))
        low, high = (middle, high) if here < p else (low, middle)
    return high
