"""What must hold in every row of predictions: each column alone, and columns that say the same thing."""

import math
from collections.abc import Iterator

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions, check_labels
from ova.predictions.reduction import SUM

CLOSE = 1e-3  # columns were computed in float32, and the matrix may have been kept in less

Rule = tuple[str, Array, Array, str]  # a column, where it is good, and what it is where it is not


def check(p: Predictions, first: int, least: int) -> None:
    """Refuse confidences, predictions and targets (from `least`) that cannot be; rows from `first`."""
    numbers = np.arange(first, first + len(p))
    good = (p.confidence >= 0) & (p.confidence <= 1)
    _refuse(numbers, ("confidence", p.confidence, good, "lies outside [0, 1]; is it a logit?"))
    check_labels(p.prediction, numbers, p.classes or 2**31, "prediction", 0)
    check_labels(p.target, numbers, p.classes or 2**31, "target", least)


def check_agreement(p: Predictions, first: int) -> None:
    """Refuse columns that contradict each other: somebody may have written them one by one."""
    numbers = np.arange(first, first + len(p))
    if p.probs is not None:
        for rule in about_matrix(p, p.probs, numbers):
            _refuse(numbers, rule)
    for rule in about_columns(p):
        _refuse(numbers, rule)
    if p.features is not None and not np.isfinite(p.features).all():
        raise BadInput("features has numbers that are not finite")


def _refuse(numbers: Array, rule: Rule) -> None:
    name, column, good, wrong = rule
    if not good.all():
        row = int(np.argmin(good))
        wrong = "is NaN" if np.isnan(column[row]) else wrong
        raise BadInput(f"row {numbers[row]}: {name} {column[row]:.6g} {wrong}")


def about_matrix(p: Predictions, probs: Array, numbers: Array) -> Iterator[Rule]:
    """The matrix is one of probabilities, and its largest are the answers."""
    if probs.shape[1] != p.classes:
        raise BadInput(f"probs has {probs.shape[1]} probabilities a row, for {p.classes} classes")
    of = Predictions.from_probs(probs, p.target, id=numbers, normalised=bool(p.normalised))
    chosen = probs[np.arange(len(p)), p.prediction]
    good = chosen >= of.confidence - CLOSE
    yield "prediction", p.prediction, good, "is not the class of the largest probability in probs"
    good = np.abs(p.confidence - of.confidence) <= CLOSE
    yield "confidence", p.confidence, good, "is not the largest probability in probs"


def about_columns(p: Predictions) -> Iterator[Rule]:
    """What is computed from p lies where it can; NaN lies nowhere."""
    K = p.classes or math.inf
    if p.log_p is not None:
        yield from about_target(p, p.log_p)
    if p.log_none is not None:
        yield "log_none", p.log_none, p.log_none <= CLOSE, "is above 0"
    if p.entropy is not None:
        most = math.log(K) if p.normalised else K * math.log(2)
        good = (p.entropy >= -CLOSE) & (p.entropy <= most * (1 + CLOSE) + SUM)
        yield "entropy", p.entropy, good, f"lies outside 0..{most:.4g}, which {K} classes can have"
    scores = {"max_logit": p.max_logit, "energy": p.energy, **p.scores}
    for name, column in scores.items():
        if column is not None:
            yield name, column, ~np.isnan(column), ""


def about_target(p: Predictions, log_p: Array) -> Iterator[Rule]:
    """p_y, here `own`, agrees with confidence and answer, and the losses agree with it."""
    c, none, own = p.confidence, p.target < 0, np.exp(np.minimum(log_p, 1))
    slack = SUM if p.normalised else CLOSE  # a row of a matrix may miss the sum of one by as much
    most = np.where(p.correct, c, 1 - c if p.normalised else c) + slack
    good = none | ((own <= most) & ((own >= c - slack) | ~p.correct))
    yield "log_p", log_p, good, "cannot be, with this confidence, prediction and target"
    if p.log_answers is not None:
        good = p.log_answers <= np.where(none, 0, log_p) + CLOSE
        yield "log_answers", p.log_answers, good, "is above log_p, which is a part of it"
    if p.squared_error is not None:
        # The other classes add the most when one of them has all that they may have.
        others = (1 - own) ** 2 if p.normalised else ((p.classes or math.inf) - 1) * c**2
        e, least = p.squared_error, (1 - own) ** 2
        good = none | ((e >= least - 2 * slack) & (e <= least + others + 2 * slack))
        yield "squared_error", e, good, "cannot be, with this log_p"


def check_classes(p: Predictions, name: object, other: Predictions, its: object) -> None:
    """Refuse to compare predictions over different classes, where both say how many there are."""
    if None not in (p.classes, other.classes) and p.classes != other.classes:
        raise BadInput(
            f"{name} has {p.classes} classes, {its} has {other.classes}; both must be of one model"
        )
