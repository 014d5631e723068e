"""The top of a trained model's page: what it promises, on what that rests, and how sure it is."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ova.metrics.choice import PLAIN
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Promise, Threshold
from ova.report.markup import Markup, el, join, table
from ova.report.numbers import percent, plain

# What each part of a promise says; the key is the field of `Promise`.
PARTS = {
    "accuracy": "at least {} of its answers are right",
    "coverage": "at least {} of the inputs are answered",
    "leak": "at most {} of the inputs that belong to no class are answered",
}
MANY = 31  # rows of a table that is unfolded on request


@dataclass(frozen=True, kw_only=True)
class ModelFacts:
    """What a model folder says of its model; None is what could not be measured."""

    threshold: (
        Threshold | Thresholds
    )  # of the score that decides; of max p it is the uncalibrated confidence
    score: str = PLAIN  # which decides
    why: str = ""  # it does
    calibrated: float | None = None  # its value on the scale of the calibrated confidences
    outcomes: Sequence[str] = ()  # on examples that the threshold has not seen, a line per set
    classes: Sequence[tuple[str, int, str, str, str]] = ()  # rows, accuracy, answered, right
    names: Sequence[str] = ()  # of the classes, where each has a threshold
    never: Sequence[str] = ()  # classes that no held-out row was answered with
    calibration: Mapping[str, Any]  # method and parameters, or `why_not`, as in calibration.json
    ece: float | None = None  # on the test set, before calibration
    calibrated_ece: float | None = None  # and after it


def section(model: ModelFacts) -> Markup:
    """The section at the top of the page."""
    cards = [promise(model), seen(model.outcomes), confidences(model)]
    return el(
        "section",
        el("h2", "What does this model promise?"),
        el("div", [el("section", card, class_="card") for card in cards], class_="cards"),
        by_class(model),
        class_="model",
        id="model",
    )


def by_class(model: ModelFacts) -> Markup | None:
    """What becomes of the test rows of each class; the last row is the mean of the classes."""
    if not model.classes:
        return None
    never = ", ".join(model.never)
    warned = f"No held-out row is ever answered with: {never}. More rows of these would help."
    head = ("class", "test rows", "right of all", "answered", "right of the answered")
    every = table(head, [*model.classes], "What does it do for each class?", "classes")
    many = el("summary", f"Its {len(model.classes) - 1} classes one by one")
    return join(
        el("p", warned, class_="warning") if never else None,
        every if len(model.classes) <= MANY else el("details", many, every, class_="more"),
    )


def promise(model: ModelFacts) -> Markup:
    """When the model answers, what is promised of that, and the examples on which it rests."""
    threshold = model.threshold
    sure = share(threshold.promise.certainty)
    wanted = el("ul", [el("li", part) for part in parts(threshold.promise)])
    if threshold.promised:
        said = f"For new inputs of the same kind it is promised, with {sure} certainty, that"
        big, end = rule(model), basis(threshold)
    elif not threshold.promise.says:
        said = "Nothing can be promised of its answers with these examples; what scores lowest is refused."
        big, end = rule(model), basis(threshold)
    else:
        said = f"Wanted for new inputs of the same kind, with {sure} certainty, was that"
        big = ["Never ", el("small", "as nothing could be promised")]
        end = f"That {threshold.why_not}. So it says “none of the above” to everything."
    return join(
        el("h4", "When does it answer?"),
        el("p", big, class_="big"),
        el("p", said),
        wanted if threshold.promise.says else None,
        el("p", end),
        each_class(threshold, model.names) if isinstance(threshold, Thresholds) else None,
        el("p", f"The score {model.score} decides: {model.why}.", class_="unit")
        if model.why
        else None,
    )


def each_class(threshold: Thresholds, names: Sequence[str]) -> Markup:
    """For how many classes the promise stands, and which are never answered, with the reason."""
    return el("ul", [el("li", line) for line in threshold.lines(names or None)])


def rule(model: ModelFacts) -> list[Any]:
    """The threshold, on the scale of the answers; the charts of the page have the other."""
    if isinstance(model.threshold, Thresholds):
        return ["By class ", el("small", "above a threshold of the class that it would answer")]
    value, calibrated = model.threshold.value, model.calibrated
    if value == -math.inf:
        return ["Always ", el("small", "whatever its confidence")]
    if model.score != PLAIN:
        return [f"Above {value:.6g} ", el("small", f"of its score {model.score}")]
    if calibrated is None or calibrated == value:
        return [f"Above {value:.6g} ", el("small", "of its confidence")]
    return [
        f"Above {calibrated:.6g} ",
        el("small", f"of its confidence; {value:.6g} before calibration"),
    ]


def parts(promise: Promise) -> list[str]:
    r"""Each part of a promise in words.

    >>> parts(Promise(accuracy=0.95))
    ['at least 95\xa0% of its answers are right']
    """
    wanted = ((text, getattr(promise, key)) for key, text in PARTS.items())
    return [text.format(share(value)) for text, value in wanted if value is not None]


def basis(threshold: Threshold | Thresholds) -> str:
    """The examples that the promise rests on, and what was seen on them."""
    none = f" ({threshold.none:,} of them of none of the classes)" if threshold.none else ""
    answered = f"{percent(threshold.answered)} are answered"
    said = f"It rests on {threshold.n:,} held-out examples{none}, of which {answered}"
    if not threshold.promise.says:
        said = f"Of {threshold.n:,} held-out examples{none} {answered}"
    if threshold.accuracy is not None:
        said += f", {percent(threshold.accuracy)} of those rightly"
    if isinstance(threshold, Threshold) and threshold.leak is not None:
        said += f"; of {threshold.outside:,} examples of no class {percent(threshold.leak)} are answered"
    return f"{said}."


def seen(outcomes: Sequence[str]) -> Markup:
    """What the threshold did on examples that it has not seen."""
    lines = [el("li", line) for line in outcomes]
    nothing = el("p", "There were no other examples to try it on.")
    return join(
        el("h4", "And on examples that it has not seen?"),
        el("ul", lines) if lines else nothing,
    )


def confidences(model: ModelFacts) -> Markup:
    """How the confidences were calibrated, and how far from the truth they are on the test set."""
    about = dict(model.calibration)
    method, n = about.pop("method", "nothing"), about.pop("n", 0)
    if "why_not" in about:
        said, how = f"The confidences are not calibrated: {about['why_not']}.", None
    else:
        about.pop("normalised", None)
        known = ", ".join(f"{key} {number(value)}" for key, value in about.items())
        said = "Its answers come with calibrated confidences, which the charts below show."
        how = f"Calibrated by the method {method} ({known}) on {n:,} held-out examples."
    return join(
        el("h4", "Do its confidences mean what they say?"),
        error(model.ece, model.calibrated_ece),
        el("p", said),
        el("p", how, class_="unit") if how else None,
    )


def error(before: float | None, after: float | None) -> Markup | None:
    """The expected calibration error on the test set, after calibration where there is one."""
    best = before if after is None else after
    if best is None:
        return None
    was = "" if after is None or before is None else f", {plain(before)} before calibration"
    return el("p", f"ECE {plain(best)} ", el("small", f"on the test set{was}"), class_="big")


def share(value: float) -> str:
    r"""A share in percent with as many digits as it was given.

    >>> share(0.95), share(0.995)
    ('95\xa0%', '99.5\xa0%')
    """
    return f"{100 * value:g}\N{NO-BREAK SPACE}%"


def number(value: Any) -> str:
    """A parameter, floats to four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
