"""A confidence threshold with a guarantee: when to answer, when to say "none of these".

The theorem behind each promise, and its proof, are in docs/threshold.md.
"""

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ova.errors import BadInput, pick
from ova.posthoc.certificates import (
    Floats,
    Truths,
    accuracy_values,
    coverage_value,
    examples_needed,
    leak_value,
    why_not_accurate,
)
from ova.posthoc.independent import Groups, Rows, one_of_each
from ova.predictions.columns import NONE
from ova.scores.table import scores_of

if TYPE_CHECKING:
    from ova.posthoc.per_class import Thresholds

PLAIN = "max_p"  # the confidence itself


class Scored(Protocol):
    """What a model said: a confidence per example, and whether its answer was right."""

    @property
    def confidence(self) -> Any: ...

    @property
    def correct(self) -> Any: ...


@dataclass(frozen=True)
class Promise:
    """What is to hold for new inputs, all of it together, with this certainty."""

    accuracy: float | None = None  # right answers among the answered, at least
    coverage: float | None = None  # answered inputs, at least
    leak: float | None = None  # answered inputs that belong to no class, at most
    certainty: float = 0.95  # 1 - delta; "confidence" is the largest p of an answer

    @property
    def says(self) -> bool:
        """Whether anything is promised; nothing is where nobody asked and no promise can be had."""
        return any(part is not None for part in (self.accuracy, self.coverage, self.leak))

    def __str__(self) -> str:
        if not self.says:
            return "nothing can be promised, what scores lowest is refused all the same"
        parts = [f"accuracy >= {self.accuracy:g}"] if self.accuracy is not None else []
        parts += [f"coverage >= {self.coverage:g}"] if self.coverage is not None else []
        parts += [f"leak <= {self.leak:g}"] if self.leak is not None else []
        return f"{', '.join(parts)} with certainty {self.certainty:g}"


@dataclass(frozen=True)
class Threshold:
    """Answer when the confidence is strictly above `value`; infinity answers nothing.

    >>> threshold = fit_threshold((np.linspace(0, 1, 500), np.ones(500)), accuracy=0.99)
    >>> print(threshold)
    answer everything: accuracy >= 0.99 with certainty 0.95 (500 examples, 100.0 % answered, 100.0 % of them right)
    >>> print(fit_threshold((np.linspace(0, 1, 200), np.ones(200)), accuracy=0.99))
    answer nothing: accuracy >= 0.99 with certainty 0.95 cannot be promised with 200 examples, 299 would be needed even if every answer were right
    """

    value: float
    promise: Promise
    n: int  # independent examples the promise rests on
    answered: float  # share of them that is answered
    accuracy: float | None = None  # measured among those answered; None when none is
    outside: int = 0  # examples of no class
    leak: float | None = None  # share of those that is answered
    why_not: str = ""  # why nothing could be promised; empty when the promise stands
    none: int = 0  # of the n, examples of none of the classes, which no answer can be right for

    @property
    def promised(self) -> bool:
        """Whether a promise stands; where one was asked for and does not, nothing is answered."""
        return self.promise.says and not self.why_not

    def answers(self, confidence: ArrayLike, of: ArrayLike | None = None) -> Truths:  # noqa: ARG002
        """Which inputs to answer, by their confidences, whatever their class; NaN never."""
        return np.asarray(confidence, dtype=np.float64) > self.value

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON; an infinite value is written as text because JSON has none."""
        value = self.value if math.isfinite(self.value) else str(self.value)
        return asdict(self) | {"value": value}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> "Threshold":
        """What `to_json` wrote."""
        try:
            promise = dict(row["promise"])
            if "confidence" in promise:  # as it was called in version 0.1
                promise["certainty"] = promise.pop("confidence")
            known = dict(row) | {"value": float(row["value"]), "promise": Promise(**promise)}
            return Threshold(**known)
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"not a threshold written by ova: {error}") from error

    def lines(self, names: Sequence[str] | None = None) -> Iterator[str]:  # noqa: ARG002
        """The promise in words; `names` are those of the classes, where one has its own threshold."""
        yield str(self)

    def __str__(self) -> str:
        if self.why_not:
            return f"answer nothing: {self.promise} {self.why_not}"
        everything = "everything" if self.value == -math.inf else f"above {self.value:.6g}"
        right = "" if self.accuracy is None else f", {self.accuracy:.1%} of them right"
        leak = "" if self.leak is None else f", {self.leak:.1%} of {self.outside} outside answered"
        none = f", {self.none} of them of none of the classes" if self.none else ""
        seen = f"{self.n} examples{none}, {self.answered:.1%} answered{right}{leak}"
        seen = seen.replace("%", " %")
        return f"answer {everything}: {self.promise} ({seen})"


@overload
def fit_threshold(
    predictions: Scored | tuple[ArrayLike, ArrayLike],
    accuracy: float | None = ...,
    certainty: float = ...,
    *,
    coverage: float | None = ...,
    leak: float | None = ...,
    outside: Any = ...,
    groups: Groups | None = ...,
    score: str = ...,
    confidence: float | None = ...,
    per: None = ...,
    pool: bool = ...,
) -> Threshold: ...


@overload
def fit_threshold(
    predictions: Scored | tuple[ArrayLike, ArrayLike],
    accuracy: float | None = ...,
    certainty: float = ...,
    *,
    coverage: float | None = ...,
    leak: float | None = ...,
    outside: Any = ...,
    groups: Groups | None = ...,
    score: str = ...,
    confidence: float | None = ...,
    per: Literal["class"] | NDArray[Any] | Sequence[Any],
    pool: bool = ...,
) -> "Thresholds": ...


def fit_threshold(  # noqa: PLR0913  three promises, their certainty, and what they rest on
    predictions: Scored | tuple[ArrayLike, ArrayLike],
    accuracy: float | None = None,
    certainty: float = 0.95,
    *,
    coverage: float | None = None,
    leak: float | None = None,
    outside: Any = None,
    groups: Groups | None = None,
    score: str = "max_p",
    confidence: float | None = None,
    per: Literal["class"] | NDArray[Any] | Sequence[Any] | None = None,
    pool: bool = False,
) -> "Threshold | Thresholds":
    """The threshold that answers most while its promise holds for new inputs of the same kind.

    P(accuracy of the answered >= a) >= certainty, whatever the model, the ties and the classes,
    if the examples are independent draws of the inputs to come and were not used for training. Of
    `coverage` and `leak` the same; several promises hold together. Without any, accuracy 0.99.
    `predictions` is a Predictions or a pair (confidence, correct); `outside`, the confidences of
    examples of no class, or their Predictions. Rows that are not independent (copies, photos of one
    thing) share a value in `groups`: one row of each group counts, drawn by lot, and new inputs are
    then new groups. `score` names another number of the Predictions by which to answer: one that
    they carry, or that is read off their columns; every ranking can keep a promise. A promise that the examples cannot support gives a threshold that answers
    nothing and says how many would be needed: the safe side, and no reason to lose a trained model.
    With `per="class"` the accuracy is promised for every class at once, among the inputs answered as
    it, each class with a threshold of its own; with a column in `per`, a value for each example, for
    every group of that column. `pool` puts those that are too rare together.
    Docs/threshold.md has theorem and proof.

    >>> right = np.arange(1000) % 20 > 0
    >>> threshold = fit_threshold((np.where(right, 0.9, 0.3), right), accuracy=0.98)
    >>> threshold.value, threshold.answered, threshold.accuracy
    (0.3, 0.95, 1.0)
    """
    if accuracy is None and coverage is None and leak is None:
        accuracy = 0.99
    certainty = renamed(certainty, confidence)
    promise = Promise(accuracy, coverage, leak, certainty)
    check_promise(promise, outside)
    if per is not None and (coverage is not None or leak is not None):
        raise BadInput("`per` promises an accuracy; a coverage or a leak is of all inputs together")
    c, right = scored(predictions, score)
    none = np.asarray(getattr(predictions, "target", np.zeros(len(c)))) == NONE
    rows = np.arange(len(c)) if groups is None else one_row_each(groups, len(c))
    if per is not None:
        from ova.posthoc.per_class import Held, fit_per, keys_of

        keys, known, what = keys_of(per, predictions, len(c))
        held = Held(c, right, none, keys).take(rows)
        return fit_per(held, promise, known, what, pool=pool)
    c, right, none = c[rows], right[rows], none[rows]
    o = np.sort(outside_scores(outside, score))[::-1]
    asked = sum(part is not None for part in (accuracy, coverage, leak))
    delta = (1 - certainty) / asked  # so that all parts hold together
    value, why_not = choose(promise, delta, (c, right), o)
    above = c > value
    return Threshold(
        value=value,
        promise=promise,
        n=len(c),
        answered=float(above.mean()),
        accuracy=float(right[above].mean()) if above.any() else None,
        outside=len(o),
        leak=float((o > value).mean()) if len(o) else None,
        why_not=why_not,
        none=int(none.sum()),
    )


def renamed(certainty: float, confidence: float | None) -> float:
    """The certainty of a promise, also where it is given by its old name."""
    if confidence is None:
        return certainty
    said = "the `confidence` of a promise is called `certainty` now; the old name goes with the next version"
    warnings.warn(said, DeprecationWarning, stacklevel=3)
    return confidence


def choose(
    promise: Promise, delta: float, examples: tuple[Floats, Truths], outside: Floats
) -> tuple[float, str]:
    """The value that keeps every part of the promise, or infinity and the reason."""
    c, right = examples
    low, high = -math.inf, math.inf
    if promise.leak is not None:
        low = leak_value(outside, promise.leak, delta)
        if low == math.inf:
            need = examples_needed(0, 1 - promise.leak, delta)
            return (
                math.inf,
                f"cannot be promised with {len(outside)} examples of no class, {need} would be needed",
            )
    if promise.coverage is not None:
        high = coverage_value(np.sort(c)[::-1], promise.coverage, delta)
    if promise.accuracy is None:
        value = high if promise.coverage is not None else low
        both = value >= low
        return (value, "") if both else (math.inf, "cannot be promised together: they conflict")
    kept = accuracy_values(c, right, promise.accuracy, delta)
    if not len(kept):
        return math.inf, why_not_accurate(c, right, promise.accuracy, delta)
    # Every value that passed is certified at once, so any of them may be chosen.
    fitting = kept[(kept >= low) & (kept <= high)]
    if not len(fitting):
        return math.inf, "cannot be promised together: they conflict"
    return float(fitting.min()), ""


def scored(
    predictions: Scored | tuple[ArrayLike, ArrayLike], score: str = PLAIN
) -> tuple[Floats, Truths]:
    """Checked confidences, or values of another score, and whether each answer was right."""
    pair = predictions if isinstance(predictions, tuple) else None
    c, right = pair if pair else (by(predictions, score), predictions.correct)  # type: ignore[union-attr]
    c, right = checked(c, "confidence"), np.asarray(right)
    if right.shape != c.shape:
        raise BadInput(f"{c.size} confidences but {right.size} answers; there must be one each")
    if not len(c):
        raise BadInput("no examples; a promise needs held-out examples with known answers")
    if not np.isin(right, (0, 1)).all():
        raise BadInput("`correct` must be true or false for each example")
    return c, right.astype(bool)


def one_row_each(groups: Groups, count: int) -> Rows:
    """A row of each group, if every one of so many examples has a group."""
    groups = [*groups]
    if len(groups) != count:
        raise BadInput(f"{count} examples but {len(groups)} groups; there must be one each")
    return one_of_each(groups)


def by(predictions: Any, score: str) -> Any:
    """The values of a score that predictions have; their confidence for max p."""
    if score == PLAIN:
        return predictions.confidence
    return pick(scores_of(predictions), score, "score of these predictions")


def outside_scores(outside: Any, score: str = PLAIN) -> Floats:
    """Checked confidences of the examples of no class, or values of another score."""
    if outside is None:
        return np.empty(0)
    values = by(outside, score) if hasattr(outside, "confidence") else outside
    return checked(values, "outside confidence")


def checked(values: ArrayLike, what: str) -> Floats:
    """A vector of finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise BadInput(f"the {what} must be one number per example, not shape {array.shape}")
    bad = int((~np.isfinite(array)).sum())
    if bad:
        raise BadInput(f"{bad} of {array.size} values of the {what} are NaN or infinite")
    return array


def check_promise(promise: Promise, outside: Any) -> None:
    """Each share strictly between 0 and 1, and outside examples where a leak is promised."""
    for name in ("accuracy", "coverage", "leak", "certainty"):
        share = getattr(promise, name)
        if share is not None and not 0 < share < 1:
            raise BadInput(f"{name} must lie strictly between 0 and 1, not {share}")
    if promise.leak is not None and outside is None:
        raise BadInput("a leak can only be promised with examples of no class: give `outside`")
