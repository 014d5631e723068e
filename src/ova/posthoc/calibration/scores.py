"""What a calibration looks at: the score of the top answer, and whether the answer was right."""

import numpy as np

from ova.errors import BadInput
from ova.posthoc.calibration.fitting import Floats
from ova.predictions import Predictions
from ova.predictions.columns import Array

LOGIT, MAX_LOGIT = "logit of max_p", "max_logit"


def source_of(p: Predictions) -> str:
    """Which score the predictions have.

    One-vs-all p_k rises with z_k, so max z orders examples as max p does and keeps the digits that
    p = 1 loses. Softmax has no such order: the largest logit says nothing without the others.
    """
    return MAX_LOGIT if p.max_logit is not None and p.normalised is False else LOGIT


def score(p: Predictions, source: str) -> Floats:
    """The score s of every top answer, in the order of the confidences."""
    if source == LOGIT:
        sure, unsure = logs(p.confidence)
        return sure - unsure
    if p.max_logit is None:
        raise BadInput(
            "this calibration was fitted on the largest logit, which these predictions do not have; "
            "fit it on predictions without `max_logit`"
        )
    return numbers(p.max_logit, "max_logit")


def logs(confidence: Array) -> tuple[Floats, Floats]:
    """The logarithms of p and 1 - p, where 0 and 1 give way to numbers just inside."""
    kind = np.finfo(confidence.dtype)
    # Half a step below one is nearer, but a number for float32 only.
    most = min(1 - float(kind.epsneg) / 2, np.nextafter(1.0, 0.0))
    c = numbers(confidence, "confidence")
    if len(c) and not 0 <= c.min() <= c.max() <= 1:
        raise BadInput("confidences must lie in [0, 1]; are they logits?")
    c = np.clip(c, float(kind.tiny), most)
    return np.log(c), np.log1p(-c)


def numbers(values: Array, name: str) -> Floats:
    """The column as float64, without NaN; an infinite logit is a confidence of 0 or 1."""
    x = np.asarray(values, dtype=np.float64)
    _refuse(np.isnan(x), f"{name} are NaN")
    return x


def _refuse(bad: Array, what: str) -> None:
    if bad.any():
        place = f"the first in row {int(bad.argmax())}"
        raise BadInput(f"{int(bad.sum())} of {len(bad)} values of {what}, {place}")


def check(p: Predictions, fewest: int, method: str) -> Array:
    """Which answers were right, where there is enough to learn from."""
    right = p.correct
    if len(p) < fewest:
        raise BadInput(f"{method} needs at least {fewest} held-out examples, there are {len(p)}")
    _refuse(~np.isfinite(p.confidence), "confidence are NaN or infinite")
    if p.max_logit is not None:
        _refuse(~np.isfinite(p.max_logit), "max_logit are NaN or infinite")
    if right.all() or not right.any():
        what = "right" if right.any() else "wrong"
        raise BadInput(
            f"all {len(p)} held-out answers are {what}: a calibration needs right and wrong ones; "
            "hold out more examples"
        )
    return right


def check_score(name: str) -> None:
    """Refuse the name of a score that no calibration reads."""
    if name not in (LOGIT, MAX_LOGIT):
        raise BadInput(f"a calibration reads {LOGIT!r} or {MAX_LOGIT!r}, not {name!r}")
