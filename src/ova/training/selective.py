"""Any fitted classifier of scikit-learn's kind with calibration, a threshold that promises, and "none"."""

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ova.errors import BadInput, pick
from ova.posthoc.calibration import CALIBRATIONS, Calibration
from ova.posthoc.independent import numbered, one_of_each
from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.predictions import NONE, Predictions
from ova.scores import SCORES, FittedScores, Outputs
from ova.scores import fit as fit_scores
from ova.training.rejecting import refusal, with_refusals

Floats = NDArray[np.float64]
LARGEST = 3e38  # in the place of an infinite score


@dataclass(eq=False, repr=False)  # which writes the constructor; the rest is scikit-learn's
class Selective(ClassifierMixin, BaseEstimator):
    """A classifier that answers only where what is promised of its answers holds.

    `estimator` has `predict_proba`. If it is fitted, `fit` takes rows that it was not trained on; if not,
    it is trained on all but the share `holdout` of the rows given, which are for the rest. Then a
    calibration makes the confidence, the largest p, as often right as it says, and a threshold keeps
    `accuracy`, `coverage` or `leak` with `certainty` (`ova.fit_threshold`), or is the number
    `threshold`. What is refused is given `reject_label`: "none of the above", or -1 among numbers.

    `decide_by` names the score that the threshold is compared with (`ova list scores`): of the
    probabilities, or of features, which are X unless the function `features` gives them and which `fit` needs
    training rows for (`trained_on=(X, y)`, where the estimator was fitted before). Probabilities that need
    not sum to one say normalised=False. A label that the estimator does not know is wrong wherever it is answered.

    Attributes after `fit`: `estimator_`, `classes_`, `threshold_`, `calibration_` (None where none could be
    fitted), `reject_label_`.

    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = load_iris(return_X_y=True)
    >>> fitted = LogisticRegression(max_iter=500).fit(X[::2], y[::2])
    >>> careful = Selective(fitted, coverage=0.8).fit(X[1::2], y[1::2])
    >>> careful.threshold_.promised, careful.score(X[1::2], y[1::2]) > 0.7
    (True, True)
    """

    estimator: Any
    _: KW_ONLY
    accuracy: float | None = None
    coverage: float | None = None
    leak: float | None = None
    certainty: float = 0.95
    threshold: float | None = None
    decide_by: str = "max_p"
    calibration: str | None = "top"  # one that keeps the order, or None
    features: Any = None
    holdout: float = 0.3
    reject_label: Any = None
    normalised: bool = True
    random_state: Any = None

    def fit(
        self, X: Any, y: Any, groups: Any = None, *, trained_on: Any = None, outside: Any = None
    ) -> "Selective":
        """Fit calibration, score and threshold on rows that the estimator was not trained on.

        Of rows that share a value in `groups`, or are the same, one counts. `outside` are inputs of none
        of the classes, for `leak`.
        """
        self._check()
        y = np.asarray(y)
        units = numbered(copies(X) if groups is None else groups)
        if not len(units) == len(y) > 0:
            raise BadInput(f"{len(y)} labels and {len(units)} rows; there must be one each")
        held = np.arange(len(y))
        if fitted(self.estimator):
            self.estimator_ = self.estimator
        else:
            learned, held = self._divide(units)
            trained_on = rows_of(X, learned), y[learned]
            self.estimator_ = clone(self.estimator).fit(*trained_on)
        held = held[one_of_each(units[held], 0)]
        self.classes_ = np.asarray(self.estimator_.classes_)
        self.reject_label_ = refusal(self.reject_label, self.classes_)
        self.evidence_ = self._evidence(trained_on)
        kept = rows_of(X, held)
        p = self._predictions(kept, y[held])
        self.calibration_ = self._calibration(p)
        self.threshold_ = self._threshold(kept, p, outside)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the largest probability, or the reject label."""
        check_is_fitted(self, "threshold_")
        p = self._predictions(X)
        limit = self.threshold_.value if isinstance(self.threshold_, Threshold) else self.threshold_
        refused = ~(self._decisive(X, p) > limit)
        return with_refusals(self.classes_[p.prediction], refused, self.reject_label_)

    def predict_proba(self, X: Any) -> Floats:
        """The estimator's own probabilities; `confidence_of` is calibrated."""
        check_is_fitted(self, "threshold_")
        return np.asarray(self.estimator_.predict_proba(X))

    def confidence_of(self, X: Any) -> Floats:
        """The largest probability, calibrated where that could be fitted."""
        check_is_fitted(self, "threshold_")
        return self._sure(self._predictions(X))

    def score_of(self, X: Any) -> Floats:
        """What the threshold is compared with."""
        check_is_fitted(self, "threshold_")
        return self._decisive(X, self._predictions(X))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of all inputs that is answered rightly; a refusal is no right answer."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def _check(self) -> None:
        """Look at the settings before anything is trained."""
        promises = Promise(self.accuracy, self.coverage, self.leak).says
        if promises == (self.threshold is not None):
            raise BadInput(
                "give a promise (accuracy=, coverage= or leak=), or threshold=, a number"
            )
        if not hasattr(self.estimator, "predict_proba"):
            raise BadInput(f"{type(self.estimator).__name__} has no predict_proba, which is needed")
        if not 0 < self.holdout < 1:
            raise BadInput(f"holdout must lie strictly between 0 and 1, not {self.holdout}")
        pick(SCORES, self.decide_by, "score")
        if self.calibration is None:
            return
        if not pick(CALIBRATIONS, self.calibration, "calibration").keeps_order(self.normalised):
            raise BadInput(
                f"calibration={self.calibration!r} can change the order of inputs, and so a promise"
            )

    def _divide(self, units: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows to train on and rows to keep away, whole groups, by lot."""
        count = int(units.max()) + 1
        held = round(self.holdout * count)
        if not 0 < held < count:
            raise BadInput(f"of {count} different rows {held} are held out; more are needed")
        place = check_random_state(self.random_state).permutation(count)[units]
        return np.flatnonzero(place >= held), np.flatnonzero(place < held)

    def _evidence(self, trained_on: Any) -> FittedScores | None:
        """The score that decides; what predictions have by themselves needs no fit."""
        if SCORES[self.decide_by].column is not None:
            return None
        if trained_on is None:
            raise BadInput(
                f"the score {self.decide_by} is fitted on training rows: trained_on=(X, y)"
            )
        X, y = trained_on
        p = self._predictions(X, np.asarray(y))
        fitted = fit_scores(self._outputs(X, p), names=[self.decide_by])
        return fitted.only(self.decide_by)

    def _calibration(self, p: Predictions) -> Calibration | None:
        """The calibration of held-out rows; one that cannot be had is said aloud."""
        if self.calibration is None:
            return None
        try:
            return CALIBRATIONS[self.calibration].fit(p)
        except BadInput as error:
            warnings.warn(f"confidences stay uncalibrated: {error}", stacklevel=3)
            return None

    def _threshold(self, X: Any, p: Predictions, outside: Any) -> Threshold | float:
        """The number that was asked for, or the threshold that keeps the promise."""
        if self.threshold is not None:
            return self.threshold
        far = None if outside is None else self._decisive(outside, self._predictions(outside))
        found = fit_threshold(
            (self._decisive(X, p), p.correct),
            self.accuracy,
            self.certainty,
            coverage=self.coverage,
            leak=self.leak,
            outside=far,
        )
        if not found.promised:
            warnings.warn(f"{found}; every input will be refused", stacklevel=3)
        return found

    def _sure(self, p: Predictions) -> Floats:
        """The confidence of each top answer."""
        return np.asarray(
            p.confidence if self.calibration_ is None else self.calibration_.confidence(p)
        )

    def _decisive(self, X: Any, p: Predictions) -> Floats:
        """What a threshold is compared with."""
        if self.decide_by == "max_p":
            return self._sure(p)
        if self.evidence_ is not None:
            values = self.evidence_(self._outputs(X, p))[self.decide_by]
        else:
            column = SCORES[self.decide_by].column
            found = None if column is None else column(p)
            if found is None:
                raise BadInput(
                    f"the score {self.decide_by} needs logits; probabilities do not have it"
                )
            values = found
        return np.clip(np.asarray(values, np.float64), -LARGEST, LARGEST)

    def _outputs(self, X: Any, p: Predictions) -> Outputs:
        """Probabilities with features beside them, where the score looks at some."""
        wanted = "features" in SCORES[self.decide_by].needs or SCORES[self.decide_by].joins
        f = None if not wanted else np.asarray(X if self.features is None else self.features(X))
        return Outputs(
            features=f, probs=p.probs, target=p.target, normalised=self.normalised, predictions=p
        )

    def _predictions(self, X: Any, y: NDArray[Any] | None = None) -> Predictions:
        """What the estimator says; a label that it does not know is none of its classes."""
        probs = np.asarray(self.estimator_.predict_proba(X))
        place = {name: k for k, name in enumerate(self.classes_.tolist())}
        none = np.full(len(probs), NONE)
        target = none if y is None else np.array([place.get(name, NONE) for name in y.tolist()])
        return Predictions.from_probs(probs, target, normalised=self.normalised, keep_probs=True)


def fitted(estimator: Any) -> bool:
    """Whether an estimator was trained already."""
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True


def copies(X: Any) -> list[Any]:
    """A value for each row, the same for rows with the same cells; each its own where cells are hidden."""
    if hasattr(X, "tocsr"):  # sparse
        csr = X.tocsr()
        return [(csr[i].indices.tobytes(), csr[i].data.tobytes()) for i in range(csr.shape[0])]
    cells = np.asarray(X)
    if cells.dtype.kind in "fiub":
        return [row.tobytes() for row in cells + (0.0 if cells.dtype.kind == "f" else 0)]
    return [repr(row) for row in cells.tolist()]


def rows_of(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a table of whatever library, or of a list."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") else [X[i] for i in rows.tolist()]
