"""The ways to calibrate, as values: fitted on held-out predictions, applied to any, kept as JSON."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.optimize import isotonic_regression
from scipy.special import expit

from ova.errors import BadInput, pick
from ova.posthoc.calibration.fitting import (
    Floats,
    blocks,
    fit_slopes,
    fit_temperature,
    log_of,
    smoothed,
    softened,
)
from ova.posthoc.calibration.scores import LOGIT, MAX_LOGIT, check, logs, numbers, score, source_of
from ova.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A fitted map from what a model said to a confidence; the answers themselves never change."""

    method: ClassVar[str]
    fewest: ClassVar[int]  # held-out examples
    order: ClassVar[str]  # what happens to the order of the confidences: kept, weakly, may change

    n: int  # examples it was fitted on
    normalised: bool | None  # of the predictions it was fitted on, where known

    def __post_init__(self) -> None:
        numbers = [v for f in fields(self) if isinstance(v := getattr(self, f.name), float)]
        if not all(math.isfinite(v) for v in numbers):
            raise BadInput(f"a parameter of the calibration {self.method} is not finite")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        """The calibration with the least loss on held-out predictions."""
        raise NotImplementedError

    def confidence(self, p: Predictions) -> Floats:
        """The calibrated confidence of every top answer, in float64."""
        raise NotImplementedError

    def apply(self, p: Predictions) -> Predictions:
        """The predictions with the calibrated confidence.

        Columns that belong to the uncalibrated probabilities (log p, entropy, ...) become unknown;
        logits and answers stay.
        """
        if None not in (self.normalised, p.normalised) and self.normalised != p.normalised:
            kinds = {True: "probabilities that sum to one", False: "one-vs-all probabilities"}
            raise BadInput(
                f"the calibration was fitted on {kinds[bool(self.normalised)]}, "
                f"these are {kinds[bool(p.normalised)]}"
            )
        return replace(
            p,
            confidence=self.confidence(p),
            log_p=None,
            log_answers=None,
            log_none=None,
            squared_error=None,
            entropy=None,
            probs=None,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"method": self.method, **asdict(self)}


@dataclass(frozen=True, kw_only=True)
class Temperature(Calibration):
    """All logits divided by one temperature T (Guo et al. 2017); the order of examples may change.

    Softmax: max_k softmax(log p / T)_k, T with the least negative log-likelihood; needs the matrix
    of probabilities. One-vs-all: sigmoid(logit(max p) / T), fitted on "is the top answer right?".

    >>> p = np.tile([[0.99, 0.01]], (100, 1))
    >>> y = np.arange(100) % 4 == 0
    >>> said = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
    >>> Temperature.fit(said).apply(said).confidence[0].round(3)
    np.float64(0.75)
    """

    method: ClassVar[str] = "temperature"
    fewest: ClassVar[int] = 10
    order: ClassVar[str] = "may change"

    temperature: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise BadInput(f"a temperature is positive, not {self.temperature}")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right = check(held, cls.fewest, cls.method)
        if held.normalised is False:
            s = score(held, LOGIT)
            temperature = 1 / fit_slopes(s[:, None], smoothed(right), intercept=False)[0][0]
        else:
            known = held.target >= 0  # an example of none of the classes has no log p
            temperature = fit_temperature(_matrix(held)[known], held.target[known])
        return cls(n=len(held), normalised=held.normalised, temperature=_short(temperature))

    def confidence(self, p: Predictions) -> Floats:
        if p.normalised is False:
            return np.asarray(expit(score(p, LOGIT) / self.temperature))
        probs = _matrix(p)
        found = [softened(log_of(probs[r]), 1 / self.temperature).max(1) for r in blocks(probs)]
        return np.concatenate(found) if found else np.empty(0)


@dataclass(frozen=True, kw_only=True)
class Top(Calibration):
    """sigmoid(a s + b) with a > 0, s the logit of the top answer (Platt 1999); keeps the order.

    One-vs-all: s is the largest logit where it is known; everywhere else s = log(p / (1 - p)) of
    p = max p.

    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1, 4000)
    >>> right = rng.random(4000) < p**2
    >>> said = Predictions.from_probs(
    ...     np.stack([p, 1 - p], 1), 1 - right.astype(int), normalised=True)
    >>> fitted = Top.fit(said)
    >>> float(said.confidence.mean() - right.mean()) > 0.15
    True
    >>> bool(abs(fitted.apply(said).confidence.mean() - right.mean()) < 1e-3)
    True
    """

    method: ClassVar[str] = "top"
    fewest: ClassVar[int] = 20
    order: ClassVar[str] = "kept"

    a: float
    b: float
    score: str

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_score(self.score)
        if self.a <= 0:
            raise BadInput(f"the slope a must be positive, not {self.a}")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right, source = check(held, cls.fewest, cls.method), source_of(held)
        a, b = fit_slopes(score(held, source)[:, None], smoothed(right))
        return cls(
            n=len(held), normalised=held.normalised, a=_short(a[0]), b=_short(b), score=source
        )

    def confidence(self, p: Predictions) -> Floats:
        return np.asarray(expit(self.a * score(p, self.score) + self.b))


@dataclass(frozen=True, kw_only=True)
class Beta(Calibration):
    """sigmoid(a log p - b log(1 - p) + c) of p = max p, a, b > 0 (Kull et al. 2017); keeps the order."""

    method: ClassVar[str] = "beta"
    fewest: ClassVar[int] = 30
    order: ClassVar[str] = "kept"

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.a <= 0 or self.b <= 0:
            raise BadInput(f"a and b must be positive, not {self.a} and {self.b}")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right = check(held, cls.fewest, cls.method)
        sure, unsure = logs(held.confidence)
        (a, b), c = fit_slopes(np.stack([sure, -unsure], 1), smoothed(right))
        return cls(n=len(held), normalised=held.normalised, a=_short(a), b=_short(b), c=_short(c))

    def confidence(self, p: Predictions) -> Floats:
        sure, unsure = logs(p.confidence)
        return np.asarray(expit(self.a * sure - self.b * unsure + self.c))


@dataclass(frozen=True, kw_only=True)
class Isotonic(Calibration):
    """The rising step function nearest to the answers (Zadrozny and Elkan 2002); makes ties.

    Between its knots it is drawn straight, outside them it is flat. Only weakly increasing: examples
    on one step become equal, so AUROC and thresholds can change.
    """

    method: ClassVar[str] = "isotonic"
    fewest: ClassVar[int] = 100
    order: ClassVar[str] = "weakly"

    x: tuple[float, ...]
    y: tuple[float, ...]
    score: str

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_score(self.score)
        x, y = np.array(self.x, float), np.array(self.y, float)
        rising = len(x) == len(y) > 0 and (np.diff(x) > 0).all() and (np.diff(y) >= 0).all()
        if not (rising and np.isfinite(x).all() and 0 <= y[0] <= y[-1] <= 1):
            raise BadInput("the knots of an isotonic calibration must rise, y within [0, 1]")

    @classmethod
    def fit(cls, held: Predictions) -> Self:
        right, source = check(held, cls.fewest, cls.method), source_of(held)
        x, place = np.unique(score(held, source), return_inverse=True)
        count = np.bincount(place).astype(np.float64)
        y = isotonic_regression(np.bincount(place, right) / count, weights=count).x
        y = np.clip(y, 0, 1)
        # The two ends of each step say all.
        end = np.concatenate([[True], y[1:-1] != y[:-2], [True]])[: len(x)]
        end[:-1] |= y[:-1] != y[1:]
        knots = tuple(x[end].tolist()), tuple(y[end].tolist())
        return cls(n=len(held), normalised=held.normalised, x=knots[0], y=knots[1], score=source)

    def confidence(self, p: Predictions) -> Floats:
        return np.interp(score(p, self.score), self.x, self.y)


CALIBRATIONS: dict[str, type[Calibration]] = {
    "temperature": Temperature,
    "top": Top,
    "beta": Beta,
    "isotonic": Isotonic,
}


def usual(normalised: bool | None, matrix: bool) -> str:
    """The method to use when nobody names one.

    >>> usual(True, matrix=True), usual(True, matrix=False), usual(False, matrix=True)
    ('temperature', 'top', 'top')
    """
    return "temperature" if normalised and matrix else "top"


def from_json(row: Mapping[str, Any]) -> Calibration:
    """What `to_json` wrote, checked.

    >>> fitted = Top(n=50, normalised=False, a=2.0, b=0.5, score="max_logit")
    >>> from_json(fitted.to_json()) == fitted
    True
    """
    if not isinstance(row, Mapping) or "method" not in row:
        raise BadInput("not a calibration written by ova: it names no method")
    if "why_not" in row:
        raise BadInput(f"there is no calibration: {row['why_not']}")
    kind = pick(CALIBRATIONS, row["method"], "calibration")
    try:
        return kind(**{k: _plain(k, v) for k, v in row.items() if k != "method"})
    except (TypeError, ValueError) as error:
        raise BadInput(f"not a calibration written by ova: {error}") from None


def _plain(name: str, value: Any) -> Any:
    if name in ("x", "y"):
        return tuple(float(v) for v in value)
    return value if name in ("n", "normalised", "score") else float(value)


def _short(x: float) -> float:
    """Ten digits: those after them depend on the order in which a machine adds."""
    return float(f"{x:.10g}")


def _check_score(name: str) -> None:
    if name not in (LOGIT, MAX_LOGIT):
        raise BadInput(f"a calibration reads {LOGIT!r} or {MAX_LOGIT!r}, not {name!r}")


def _matrix(p: Predictions) -> Floats:
    if p.probs is None:
        raise BadInput(
            "temperature divides all logits of an example, so it needs the matrix of probabilities "
            "(`probs`), which these predictions do not have; top, beta and isotonic need only the "
            "confidences"
        )
    numbers(p.probs.min(1), "probs")
    return p.probs
