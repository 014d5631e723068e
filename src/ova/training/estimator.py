"""A scikit-learn classifier for tables that can say "none of the above"."""

import math
import warnings
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_random_state, check_X_y
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data
from torch import Tensor, nn

from ova.data.cells import Column
from ova.errors import BadInput, pick
from ova.metrics.choice import PLAIN, finite
from ova.nn.formulations import DEFAULT, FORMULATIONS, Formulation
from ova.posthoc.calibration import CALIBRATIONS, Calibration
from ova.posthoc.independent import Rows, numbered, one_of_each
from ova.posthoc.threshold import Promise, Threshold, fit_threshold, renamed
from ova.predictions import Predictions
from ova.predictions.columns import NONE
from ova.predictions.memory import frame
from ova.scores import SCORES, FittedScores, Outputs
from ova.scores import fit as fit_scores
from ova.training.drawing import Drawing
from ova.training.rejecting import refusal, with_refusals
from ova.training.scorers import roc_auc_ovr
from ova.training.worded import encoded, learned, one_hot, worded

if TYPE_CHECKING:
    from ova.training.estimator_graph import Answers

Floats = NDArray[np.float64]
NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}


@dataclass(eq=False, repr=False)  # which writes the constructor; the rest is scikit-learn's
class OneVsAllClassifier(ClassifierMixin, BaseEstimator):
    """A small network on standardised columns that can say "none of the above".

    `predict_proba` gives one probability per class, p_k = 2 / (1 + e^(s d_k)) for `ova-dm`. They answer
    K separate questions and do **not** sum to one: all may be small, which means that the input is
    like none of the classes. Renormalising destroys that; `normalised=True` does it on request.

    Answers are refused where the confidence max_k p_k is not above a threshold: a number
    (`threshold=0.8`), or one that promises an accuracy of what is answered (`accuracy=0.99`), a
    share of inputs that is answered (`coverage=0.9`), or a share of inputs of no class that is
    answered at most (`leak=0.05`, which needs examples of them, see `none_label`), or several
    of these, with `certainty`. It is fitted on the share `holdout` of the training data. A
    refused input is given `reject_label`: by default "none of the above", or -1 where the
    labels are numbers.

    `calibration="top"` (or "beta"; "temperature" for one-vs-all) makes the confidence as often right as it says, on the same
    held-out share. It changes `confidence_of` and what a threshold is compared with, never the
    probabilities of `predict_proba` or which class is likeliest. It keeps the order of inputs, so
    a promise refuses the same ones with and without it.

    `decide_by` names the score that a threshold is compared with (`ova list scores`): max p by default,
    any other is fitted on the training rows, and a promise is then fitted by it. The confidence
    stays what it is; a calibration does not touch another score.

    `class_weight` ("balanced", or a dictionary from label to weight) and `fit(..., sample_weight=)`
    say how much rows count in the training loss; promises and calibrations are about the rows
    as they come. A missing number, NaN, is filled with the median of its column, and marked by
    an input of its own where the training rows have some. `verbose=True` prints the loss of ten
    epochs. `scoring="roc_auc_ovr"` of scikit-learn takes only probabilities that sum to one:
    say normalised=True there, or give `scoring=OneVsAllClassifier.roc_auc_ovr`, which wants no sum.
    Columns of words of a data frame (pandas, polars, Arrow) are one-hot, as `ova.train` has them; a word
    that no training row had is none of them. There is no `partial_fit`: rows that came later would
    be standardised by others, and a promise rests on rows that nothing was trained on. `export` writes
    an ONNX file that decides alike.

    `none_label` says which label in y marks examples of none of the classes. They are trained on
    (p_k = 0 for every k; softmax: 1/K), are no class, and are wrong answers wherever they are
    answered. A refused input is then given this label, unless `reject_label` says otherwise.

    Attributes after `fit`: `classes_`, `n_features_in_`, `reject_label_` (None without a
    threshold), `threshold_` (with what it promises and measured; None without one),
    `evidence_` (what the score of `decide_by` has learned; None for max p), `calibration_` (None where none was asked for or could be fitted).

    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = OneVsAllClassifier(threshold=0.1, random_state=0).fit(X, y)
    >>> model.predict(X[:2]), model.predict(100 + X[:2])
    (array([0, 0]), array([-1, -1]))
    """

    formulation: str = DEFAULT
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64)  # sizes of the hidden layers; () is a linear model
    epochs: int | None = None  # None: as many as make about 1,000 steps, 20 to 200
    batch_size: int = 128
    lr: float = 0.01
    weight_decay: float = 1e-4
    threshold: float | None = None
    accuracy: float | None = None
    coverage: float | None = None
    leak: float | None = None
    certainty: float = 0.95  # of these promises
    decide_by: str = PLAIN
    calibration: str | None = None  # one that keeps the order, or None (also "none")
    holdout: float = 0.3
    reject_label: Any = None
    none_label: Any = None
    normalised: bool = False
    class_weight: Any = None
    verbose: bool = False
    random_state: Any = None
    confidence: float | None = None  # the name of `certainty` in version 0.1

    roc_auc_ovr = staticmethod(roc_auc_ovr)  # a scorer, which wants no sum of one

    def fit(
        self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None
    ) -> "OneVsAllClassifier":
        """Learn from a table and its labels; a promise or a calibration keeps some rows away.

        Rows with the same value in `groups` (of one sender, one patient) are not independent: they
        stay on one side, and of those kept away one counts, drawn by lot. Without groups, rows with
        the same columns are taken so. New inputs are then new groups.
        """
        form = self._check()
        X, y = self._given(X, y)
        check_classification_targets(y)
        rows = self._number(y)
        if len(self.classes_) < 2:
            only = f"one class only, {self.classes_[0]!r}" if len(self.classes_) else "no class"
            raise BadInput(f"there is {only}; at least 2 are needed")
        self.reject_label_ = self._refusal()
        weight = self._weights(X, y, sample_weight)
        random = check_random_state(self.random_state)
        learned, tested = self._divide(copies(X) if groups is None else groups, len(X), random)
        self._scale(X[learned])
        seed = int(random.randint(2**31 - 1))
        self._train(form, X[learned], (rows[learned], weight[learned]), seed)
        self.evidence_ = self._evidence(X[learned], rows[learned])
        self.calibration_: Calibration | None = None
        self.threshold_: Threshold | float | None = self.threshold
        if len(tested):
            self._promise(X[tested], rows[tested])
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of the largest probability, or the reject label."""
        X = self._checked(X)
        label = self._label(X, self._predictions(X))
        labels = self.classes_[label]
        if self.threshold_ is None:
            return np.asarray(labels)
        return with_refusals(labels, label == NONE, self.reject_label_)

    def predict_proba(self, X: Any) -> Floats:
        """The probability of each class, in the order of `classes_`; see the class for their sum.

        Uncalibrated: a calibration is of the top answer, and `confidence_of` gives it.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: Any) -> Floats:
        """The logarithms of `predict_proba`."""
        return self._shared(self._outputs(self._checked(X))[1])

    def decision_function(self, X: Any) -> Floats:
        """The logarithm of p_k for each class; for two classes, log p_1 - log p_0."""
        scores = self.predict_log_proba(X)
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def confidence_of(self, X: Any) -> Floats:
        """max_k p_k, never normalised, calibrated on request: what the threshold is compared with."""
        return self._sure(self._predictions(self._checked(X)))

    def score_of(self, X: Any) -> Floats:
        """What the threshold is compared with: the confidence, or the score of `decide_by`."""
        X = self._checked(X)
        return self._decisive(X, self._predictions(X))

    def encode(self, X: Any) -> Floats:
        """The table as the ONNX file takes it: numbers as they are, words one-hot."""
        return self._checked(X)

    def export(self, path: str | PathLike[str]) -> float:
        """Write an ONNX file that decides as `predict`; gives the largest difference that was seen.

        Its input `input` is a table, float64 N x D as `encode` gives it: numbers as they come, NaN
        where one is missing, words one-hot. Its
        outputs are `probs` (as `predict_proba`), `label` (the place in `classes_`, -1 for what is
        refused), `confidence` (`confidence_of`) and `score` (`score_of`). Classes, reject label, columns
        and threshold are JSON in its metadata, under names that begin with "ova.".
        """
        from ova.training import estimator_graph

        check_is_fitted(self)
        return estimator_graph.export(self, self._answers, Path(path))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of all inputs that is answered rightly.

        A refusal is right for an example of none of the classes (`none_label`), else it is wrong.
        """
        p, y = self.predict(X), np.asarray(y)
        refused = np.asarray(p == self.reject_label_)  # nowhere without a threshold
        right = np.where(self._is_none(y), refused, p == y)
        return float(np.average(right, weights=sample_weight))

    def _given(self, X: Any, y: Any) -> tuple[Floats, NDArray[Any]]:
        """The table as numbers and the labels, both looked at; remembers what its columns are."""
        table = worded(X)
        self.columns_: tuple[Column, ...] = ()
        if table is not None:
            validate_data(self, X, y, skip_check_array=True)  # which remembers the names
            self.columns_ = learned(table)
            X, y = check_X_y(encoded(table, self.columns_), y, estimator=self, **NUMBERS)
        else:
            X, y = validate_data(self, X, y, **NUMBERS)
        return np.asarray(X), np.asarray(y)

    def _check(self) -> Formulation:
        """The formulation, after a look at the settings that can contradict each other."""
        if self.threshold is not None and self._promises:
            said = "accuracy= (a promise; or coverage=, leak=)"
            raise BadInput(f"give threshold= (a number) or {said}, not both")
        if self.reject_label is not None and self.threshold is None and not self._promises:
            raise BadInput("reject_label needs a threshold= or an accuracy= to promise")
        if self.leak is not None and self.none_label is None:
            raise BadInput(
                "leak= limits how many inputs of none of the classes are answered, so it needs examples "
                "of them: none_label= says which label of y they have"
            )
        if not 0 < self.holdout < 1:
            raise BadInput(f"holdout must lie strictly between 0 and 1, not {self.holdout}")
        if self.batch_size < 1 or (self.epochs is not None and self.epochs < 1):
            raise BadInput("batch_size and epochs must be at least 1")
        form = pick(FORMULATIONS, self.formulation, "formulation")
        pick(SCORES, self.decide_by, "score")
        if not self._calibrates:
            return form
        if not pick(CALIBRATIONS, str(self.calibration), "calibration").keeps_order(
            form.normalised
        ):
            fit = [repr(n) for n, kind in CALIBRATIONS.items() if kind.keeps_order(form.normalised)]
            raise BadInput(
                f"calibration={self.calibration!r} can change the order of inputs, and so a promise; "
                f"{' and '.join(fit)} keep it"
            )
        return form

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _promises(self) -> bool:
        return Promise(self.accuracy, self.coverage, self.leak).says

    @property
    def _calibrates(self) -> bool:
        return self.calibration not in (None, "none")

    def _held(self, n: int) -> int:
        """How many of n independent rows are kept away from training."""
        if not self._promises and not self._calibrates:
            return 0
        held = round(self.holdout * n)
        if not 0 < held < n:
            raise BadInput(f"nothing can be fitted afterwards: of {n} rows {held} are held out")
        return held

    def _divide(self, groups: Any, n: int, random: np.random.RandomState) -> tuple[Rows, Rows]:
        """Rows to learn from and rows to keep away: whole groups, and one row of each, by lot."""
        unit = numbered(groups)
        if len(unit) != n:
            raise BadInput(f"{n} rows but {len(unit)} groups; there must be one each")
        order = random.permutation(int(unit.max()) + 1)
        held, place = self._held(len(order)), np.argsort(order)[unit]
        rows = np.argsort(place, kind="stable")
        learned, kept = rows[place[rows] >= held], rows[place[rows] < held]
        return learned, kept[one_of_each(unit[kept])]

    def _is_none(self, y: NDArray[Any]) -> NDArray[np.bool_]:
        """Which labels say "none of the classes"."""
        none = self.none_label
        return np.array([none is not None and label == none for label in y.tolist()], dtype=bool)

    def _number(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """The number of each label among the classes, -1 for none of them."""
        inside = ~self._is_none(y)
        rows = np.full(len(y), NONE)
        self.classes_, rows[inside] = np.unique(y[inside], return_inverse=True)
        return rows

    def _refusal(self) -> Any:
        """What a refused input is called; never one of the classes."""
        if self.threshold is None and not self._promises:
            return None
        label = self.none_label if self.reject_label is None else self.reject_label
        return refusal(label, self.classes_)

    def _scale(self, X: Floats) -> None:
        """Remember mean and spread of the columns; one that never varies stays as it is.

        Of what is missing the medians, and the columns where something is.
        """
        gaps = np.isnan(X)
        columns = [v[~gap] if gap.any() else v for v, gap in zip(X.T, gaps.T, strict=True)]
        self.fill_ = np.array([np.median(v) if len(v) else 0.0 for v in columns])
        self.marked_ = np.flatnonzero(gaps.any(0))
        X = np.where(gaps, self.fill_, X)
        self.mean_, spread = X.mean(0), X.std(0)
        self.scale_ = np.where(spread > 1e-12 * np.abs(self.mean_), spread, 1.0)
        if self.columns_:  # words keep their 0 and 1; one that only held-out rows have is none
            words = one_hot(self.columns_)
            self.scale_[words] = np.where(X.any(0), 1.0, np.inf)[words]
            self.mean_[words] = 0.0

    def _weights(self, X: Floats, y: NDArray[Any], sample_weight: Any) -> Floats:
        """How much each row counts in training; examples of none of the classes as their rows say."""
        weight = np.asarray(_check_sample_weight(sample_weight, X, dtype=np.float64))
        if (weight < 0).any():
            raise BadInput("sample_weight must not be negative")
        inside = ~self._is_none(y)
        if self.class_weight is not None:
            weight = weight.copy()
            weight[inside] *= compute_sample_weight(self.class_weight, y[inside])
        return weight

    def _train(
        self, form: Formulation, X: Floats, told: tuple[NDArray[np.int64], Floats], seed: int
    ) -> None:
        """AdamW with a cosine to zero; the seed decides everything, and leaves no trace outside."""
        x, target = self._tensor(X).float(), torch.from_numpy(told[0])
        weight = torch.from_numpy(told[1] / max(told[1].mean(), np.finfo(float).tiny)).float()
        steps = math.ceil(len(x) / self.batch_size)
        epochs = self.epochs or min(max(math.ceil(1000 / steps), 20), 200)
        generator = torch.Generator().manual_seed(seed)
        with Drawing(generator):
            net = network(form, (x.shape[1], *self.hidden), len(self.classes_))
        optimiser = torch.optim.AdamW(net.parameters(), self.lr, weight_decay=self.weight_decay)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs * steps)
        for epoch in range(1, epochs + 1):
            total = 0.0
            for rows in torch.randperm(len(x), generator=generator).chunk(steps):
                optimiser.zero_grad()
                loss = (weight[rows] * form.loss(net(x[rows]), target[rows])).mean()
                loss.backward()
                optimiser.step()
                schedule.step()
                total += len(rows) * float(loss.detach()) if self.verbose else 0
            if self.verbose and (epoch % math.ceil(epochs / 10) == 0 or epoch == epochs):
                print(f"epoch {epoch}/{epochs}  loss {total / len(x):.4f}")
        # Double, so that a row's answer does not depend on the rows that come with it.
        self.network_ = net.double().eval()

    def _promise(self, X: Floats, y: NDArray[np.int64]) -> None:
        """Calibration and threshold on held-out rows; one that cannot be had is said aloud."""
        p = self._predictions(X, y)
        if self._calibrates:
            try:
                self.calibration_ = CALIBRATIONS[str(self.calibration)].fit(p)
            except BadInput as error:
                warnings.warn(f"confidences stay uncalibrated: {error}", stacklevel=3)
        if not self._promises:
            return
        # The order is kept, so the calibrated confidences of these rows promise what the raw ones do.
        certainty = renamed(self.certainty, self.confidence)
        values = self._decisive(X, p)
        self.threshold_ = fit_threshold(
            (values, p.correct),
            self.accuracy,
            certainty,
            coverage=self.coverage,
            leak=self.leak,
            outside=None if self.leak is None else values[y == NONE].astype(np.float64),
        )
        if not self.threshold_.promised:
            warnings.warn(f"{self.threshold_}; every input will be refused", stacklevel=3)

    def _sure(self, p: Predictions) -> Floats:
        """The confidence of each top answer."""
        fitted = self.calibration_
        return np.asarray(p.confidence if fitted is None else fitted.confidence(p))

    def _evidence(self, X: Floats, y: NDArray[np.int64]) -> FittedScores | None:
        """The score that decides, fitted on the training rows; max p needs no fit."""
        if self.decide_by == PLAIN:
            return None
        fitted = fit_scores(self._said(X, y), names=[self.decide_by])
        return fitted.only(self.decide_by)

    def _decisive(self, X: Floats, p: Predictions) -> Floats:
        """What a threshold is compared with: the confidence, or the score that was asked for."""
        if self.evidence_ is None:
            return self._sure(p)
        return finite(self.evidence_(self._said(X))[self.decide_by])

    def _said(self, X: Floats, y: NDArray[np.int64] | None = None) -> Outputs:
        """Features and logits of a table."""
        z, log_p = self._outputs(X)
        normalised = FORMULATIONS[self.formulation].normalised
        with torch.inference_mode():
            parts = [self.network_[:-1](x) for x in self._tensor(X).split(4096)]
        f = torch.cat(parts).numpy()
        return Outputs(features=f, logits=z, log_p=log_p, target=y, normalised=normalised)

    def _label(self, X: Floats, p: Predictions) -> NDArray[np.int64]:
        """The place of the likeliest class of each row, -1 where it is refused."""
        if self.threshold_ is None:
            return np.asarray(p.prediction)
        limit = self.threshold_.value if isinstance(self.threshold_, Threshold) else self.threshold_
        return np.where(self._decisive(X, p) > limit, p.prediction, NONE)

    def _shared(self, log_p: Floats) -> Floats:
        """The log-probabilities, of which those of a row sum to one on request."""
        return log_p - np.logaddexp.reduce(log_p, axis=1)[:, None] if self.normalised else log_p

    def _answers(self, X: Floats) -> "Answers":
        """All that an ONNX file says of a table."""
        from ova.training.estimator_graph import Answers

        (z, log_p), p = self._outputs(X), self._predictions(X)
        first, second = -np.partition(-z, 1)[:, :2].T
        return Answers(
            np.exp(self._shared(log_p)),
            self._label(X, p),
            self._sure(p),
            self._decisive(X, p),
            first - second,
        )

    def _tensor(self, X: Floats) -> Tensor:
        gaps = np.isnan(X)
        standard = (np.where(gaps, self.fill_, X) - self.mean_) / self.scale_
        return torch.from_numpy(np.hstack([standard, gaps[:, self.marked_]]))

    def _checked(self, X: Any) -> Floats:
        """The table as numbers, if the model is fitted and the table has its columns."""
        check_is_fitted(self)
        table = worded(X)
        if not self.columns_ and table is None:
            return np.asarray(validate_data(self, X, reset=False, **NUMBERS))
        if not self.columns_:
            raise BadInput("X has a column of words, and the model was fitted on numbers")
        table = frame(X) if table is None and hasattr(X, "columns") else table
        if table is None:
            names = ", ".join(repr(column.name) for column in self.columns_)
            raise BadInput(
                f"the model was fitted on a data frame; give one with the columns {names}"
            )
        X = encoded(table, self.columns_)
        return np.asarray(check_array(X, estimator=self, **NUMBERS))

    def _predictions(self, X: Floats, y: NDArray[np.int64] | None = None) -> Predictions:
        targets = np.full(len(X), NONE) if y is None else y
        normalised = FORMULATIONS[self.formulation].normalised
        return Predictions.from_logits(*self._outputs(X), targets, normalised=normalised)

    def _outputs(self, X: Floats) -> tuple[Floats, Floats]:
        """Logits and their log-probabilities."""
        with torch.inference_mode():
            z = torch.cat([self.network_(x) for x in self._tensor(X).split(4096)]).double()
            return z.numpy(), FORMULATIONS[self.formulation].log_probs(z).numpy()


def copies(X: Floats) -> list[bytes]:
    """A group for each row, the same for rows with the same columns."""
    return [row.tobytes() for row in X + 0.0]  # which makes -0 a 0


def network(form: Formulation, sizes: tuple[int, ...], classes: int) -> nn.Sequential:
    """Linear layers with ReLUs between, and the head of the formulation at the end."""
    layers: list[nn.Module] = []
    for narrow, wide in pairwise(sizes):
        layers += [nn.Linear(narrow, wide), nn.ReLU()]
    return nn.Sequential(*layers, form.head(sizes[-1], classes))
