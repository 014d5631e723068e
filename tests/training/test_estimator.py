"""OneVsAllClassifier is a scikit-learn classifier, and can refuse to answer."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Event
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer, load_iris, make_blobs
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ova
from narrowing import there
from ova.errors import BadInput
from ova.nn.formulations import DEFAULT, FORMULATIONS, PAPER
from ova.posthoc.threshold import Threshold
from ova.scores import SCORES
from ova.training.estimator import OneVsAllClassifier

QUICK: dict[str, Any] = {"hidden": (16,), "epochs": 60, "random_state": 0}
SUM = "p_k of one-vs-all answer K questions; they do not sum to one, and must not"
STEPS = "rows come in batches by lot, so a row of weight 2 is met once and one that is there twice, twice"
SAMPLED = {
    "check_sample_weight_equivalence_on_dense_data": STEPS,
}
BY_DESIGN = {
    "check_classifiers_train": SUM,
    "check_decision_proba_consistency": "sign(log p_1 - log p_0) decides, p_1 alone does not: "
    + SUM,
}


def expected(estimator: OneVsAllClassifier) -> dict[str, str]:
    unnormalised = estimator.formulation != "softmax" and not estimator.normalised
    return SAMPLED | (BY_DESIGN if unnormalised else {})


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [OneVsAllClassifier(**QUICK)], expected_failed_checks=expected
)
def test_scikit_learn_checks(estimator: OneVsAllClassifier, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [
        OneVsAllClassifier(normalised=True, **QUICK),
        OneVsAllClassifier("softmax", **QUICK),
        OneVsAllClassifier("softmax", calibration="top", **QUICK),
    ],
    expected_failed_checks=expected,
)
@pytest.mark.filterwarnings("ignore:confidences stay uncalibrated")  # their tables are tiny
def test_scikit_learn_checks_of_other_settings(estimator: OneVsAllClassifier, check: Any) -> None:
    check(estimator)


def test_the_defaults_learn_and_probabilities_are_honest() -> None:
    X, y = load_iris(return_X_y=True)
    model = ova.OneVsAllClassifier(random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95
    p = model.predict_proba(X)
    assert ((p >= 0) & (p <= 1)).all()
    assert abs(p.sum(1) - 1).max() > 0.05
    assert model.predict_proba(X + 100).max() < 0.01
    assert np.allclose(p.max(1), model.confidence_of(X))
    share = OneVsAllClassifier(normalised=True, random_state=0).fit(X, y).predict_proba(X)
    assert np.allclose(share, p / p.sum(1, keepdims=True))


def test_in_pipelines_searches_and_displays() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X, y = X[:200], np.array(["bad", "good"])[y[:200]]
    model = make_pipeline(StandardScaler(), OneVsAllClassifier("ova", **QUICK))
    assert cross_val_score(model, X, y, cv=3).mean() > 0.9
    grid = {"onevsallclassifier__formulation": ["softmax", "ova-dm"]}
    search = GridSearchCV(model, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.85
    import matplotlib as mpl

    mpl.use("Agg")
    display = CalibrationDisplay.from_estimator(model.fit(X, y), X, y, n_bins=5)
    assert len(display.prob_true)


LABELS: dict[str, tuple[list[Any], Any]] = {
    "numbers": ([0, 1, 2], -1),
    "floats": ([0.0, 1.0, 2.0], -1),
    "texts": (["a", "b, c", 'say "d"'], "none of the above"),
    "bytes-like objects": (["", " ", "ü"], "none of the above"),
}


@pytest.mark.parametrize(("labels", "refusal"), LABELS.values(), ids=LABELS)
def test_far_inputs_are_refused(labels: list[Any], refusal: Any) -> None:
    X, y = make_blobs(300, centers=3, random_state=0)
    y = np.array(labels)[y]
    model = OneVsAllClassifier(threshold=0.05, **QUICK).fit(X, y)
    assert set(model.predict(X + 1000)) == {refusal}
    assert model.reject_label_ == refusal
    assert np.isin(model.predict(X), [*labels, refusal]).all()
    assert (model.predict(X) == y).mean() > 0.8
    assert model.score(X + 1000, y) == 0


@pytest.mark.parametrize("name", ["far", 7, None])
def test_the_reject_label_may_be_of_another_kind(name: Any) -> None:
    X, y = make_blobs(100, centers=2, random_state=0)
    model = OneVsAllClassifier(threshold=1.0, reject_label=name, **QUICK).fit(X, y)
    assert set(model.predict(X)) == {-1 if name is None else name}


def test_the_promise_is_fitted_on_held_out_rows() -> None:
    X, y = make_blobs(2000, centers=4, cluster_std=1.2, random_state=0)
    new_X, new_y = X[1000:], y[1000:]
    model = OneVsAllClassifier(accuracy=0.9, holdout=0.5, **QUICK).fit(X[:1000], y[:1000])
    assert isinstance(model.threshold_, Threshold)
    assert model.threshold_.promised
    assert model.threshold_.n == 500
    said = model.predict(new_X)
    answered = said != -1
    assert 0.3 < answered.mean() < 1
    assert (said[answered] == new_y[answered]).mean() >= 0.9
    assert (answered == model.threshold_.answers(model.confidence_of(new_X))).all()


def test_a_promise_that_cannot_be_made_is_said_and_refuses_all() -> None:
    X, y = make_blobs(100, centers=2, random_state=0)
    with pytest.warns(UserWarning, match="299 would be needed.*every input will be refused"):
        model = OneVsAllClassifier(accuracy=0.99, **QUICK).fit(X, y)
    assert set(model.predict(X)) == {-1}


QUICK_PAIRS = [("ova", "beta"), ("softmax", "top")]


@pytest.mark.parametrize(
    ("formulation", "method"),
    [
        pytest.param(*each, marks=() if each in QUICK_PAIRS else pytest.mark.slow)
        for each in product(["ova", "ova-dm", "softmax"], ["top", "beta"])
    ],
)
def test_a_calibration_is_honest_and_changes_no_decision(method: str, formulation: str) -> None:
    """The same rows are refused with and without it; its threshold is one of its confidences."""
    X, y = make_blobs(3000, centers=4, cluster_std=1.8, random_state=0)
    seen, new, new_y = X[:1500], X[1500:], y[1500:]
    given = {**QUICK, "accuracy": 0.8, "holdout": 0.4}
    raw, sure = (
        OneVsAllClassifier(formulation, calibration=name, **given).fit(seen, y[:1500])
        for name in ("none", method)
    )
    assert (raw.predict(new) == sure.predict(new)).all()
    assert 0.1 < (sure.predict(new) == -1).mean() < 0.9
    assert (raw.predict_proba(new) == sure.predict_proba(new)).all()
    c = sure.confidence_of(new)
    assert (np.argsort(c) == np.argsort(raw.confidence_of(new))).all()
    assert isinstance(raw.threshold_, Threshold)
    assert isinstance(sure.threshold_, Threshold)
    assert sure.threshold_.promise == raw.threshold_.promise
    assert sure.threshold_.answered == raw.threshold_.answered
    assert ((sure.predict(new) == -1) == ~sure.threshold_.answers(c)).all()
    right = sure.classes_[sure.predict_proba(new).argmax(1)] == new_y
    assert abs(c.mean() - right.mean()) < 0.04
    assert abs(c.mean() - right.mean()) <= abs(raw.confidence_of(new).mean() - right.mean()) + 0.02


def test_a_temperature_keeps_the_order_of_one_vs_all() -> None:
    X, y = make_blobs(1000, centers=3, cluster_std=2.5, random_state=0)
    raw, sure = (
        OneVsAllClassifier(calibration=name, accuracy=0.7, **QUICK).fit(X, y)
        for name in (None, "temperature")
    )
    assert (raw.predict(X) == sure.predict(X)).all()
    assert not np.allclose(raw.confidence_of(X), sure.confidence_of(X))
    assert (np.argsort(raw.confidence_of(X)) == np.argsort(sure.confidence_of(X))).all()


def test_a_number_as_threshold_is_compared_with_the_calibrated_confidence() -> None:
    X, y = make_blobs(600, centers=3, cluster_std=2.5, random_state=0)
    model = OneVsAllClassifier(calibration="top", threshold=0.6, **QUICK).fit(X, y)
    assert ((model.predict(X) == -1) == (model.confidence_of(X) <= 0.6)).all()
    assert not np.allclose(model.confidence_of(X), model.predict_proba(X).max(1))


def test_a_calibration_that_cannot_be_fitted_is_said_and_left_out() -> None:
    X, y = make_blobs(100, centers=2, random_state=3)
    with pytest.warns(UserWarning, match="stay uncalibrated: all 30 held-out answers are right"):
        model = OneVsAllClassifier(calibration="top", **QUICK).fit(X, y)
    assert model.calibration_ is None
    assert np.allclose(model.confidence_of(X), model.predict_proba(X).max(1))


NUMBERS, WORDS = [0, 1, 2, 99], ["a", "b", "c", "other"]
QUICKLY: list[tuple[str, list[Any]]] = [
    *((name, NUMBERS) for name in (*PAPER, DEFAULT)),
    (DEFAULT, WORDS),
]
OTHERS = [name for name in FORMULATIONS if name not in (*PAPER, DEFAULT)]


@pytest.mark.parametrize(
    ("formulation", "labels"),
    [
        *(pytest.param(name, labels, id=f"{name}-{labels[3]}") for name, labels in QUICKLY),
        *(pytest.param(name, NUMBERS, id=name, marks=pytest.mark.slow) for name in OTHERS),
    ],
)
def test_examples_of_none_are_no_class_and_are_refused(formulation: str, labels: list[Any]) -> None:
    """A blob in the middle of three is none of them: nearer to all than a far input would be."""
    X, k = make_blobs(1200, centers=[[-4, 0], [4, 0], [0, 6], [0, 1]], random_state=0)
    y, none = np.array(labels)[k], k == 3
    model = OneVsAllClassifier(
        formulation, none_label=labels[3], threshold=0.6, **{**QUICK, "epochs": 15}
    ).fit(X, y)
    assert model.classes_.tolist() == labels[:3]
    assert model.predict_proba(X).shape == (1200, 3)
    c = model.confidence_of(X)
    assert roc_auc_score(~none, c) > 0.95
    said = model.predict(X)
    assert set(said.tolist()) <= {*labels}
    right = sum(s == t for s, t in zip(said.tolist(), y.tolist(), strict=True)) / len(y)
    assert model.score(X, y) == pytest.approx(right)


def test_an_answered_example_of_none_is_a_wrong_answer_for_every_promise() -> None:
    """Oracle: the held-out rows by hand; a third of all rows is noise of no class."""
    draw = np.random.default_rng(0)
    X, y = make_blobs(1500, centers=2, cluster_std=1.0, random_state=0)
    X, y = np.vstack([X, draw.uniform(-8, 8, (500, 2))]), np.append(y, [-1] * 500)
    given = {**QUICK, "accuracy": 0.9, "calibration": "top", "none_label": -1}
    model = OneVsAllClassifier("ova", reject_label="?", **given).fit(X, y)
    order = np.random.RandomState(0).permutation(2000)[:600]
    held, right = X[order], model.predict_proba(X[order]).argmax(1) == y[order]
    by_hand = ova.fit_threshold((model.confidence_of(held), right), 0.9)
    assert model.threshold_ == by_hand
    assert there(model.calibration_).n == 600
    assert abs(model.confidence_of(held).mean() - right.mean()) < 0.01
    said = model.predict(X)
    both = np.where(y == -1, said == "?", said == y.astype(object))
    assert model.score(X, y) == both.mean()
    silent = OneVsAllClassifier("ova", none_label=-1, **QUICK).fit(X, y)
    assert silent.score(X, y) <= 0.75  # without a threshold an example of none is answered


# Random labels, and a network that can learn any labels by heart.
BY_HEART: dict[str, Any] = {"hidden": (128,), "epochs": 150, "batch_size": 64, "random_state": 0}


def strangers(n: int, each: int = 1, spread: float = 0.0) -> tuple[Any, Any, Any]:
    """n points with a random label, each some times over, and which of them each row is."""
    draw = np.random.default_rng(0)
    of = np.repeat(np.arange(n), each)
    X = draw.normal(size=(n, 10))[of] + spread * draw.normal(size=(n * each, 10))
    order = draw.permutation(n * each)
    return X[order], draw.integers(2, size=n)[of][order], of[order]


@pytest.mark.parametrize("formulation", ["ova", "softmax"])
def test_rows_that_carry_a_promise_are_not_learned_by_heart(formulation: str) -> None:
    """The network knows its own rows and nothing of the others, and says so."""
    X, y, _ = strangers(400)
    given = {**BY_HEART, "accuracy": 0.7, "calibration": "top", "holdout": 0.5}
    with pytest.warns(UserWarning, match="every input will be refused"):
        model = OneVsAllClassifier(formulation, **given).fit(X, y)
    right = model.classes_[model.predict_proba(X).argmax(1)] == y
    kept = np.random.RandomState(0).permutation(400)[:200]
    assert np.delete(right, kept).mean() > 0.98
    assert right[kept].mean() == pytest.approx(0.5, abs=0.12)
    assert there(model.calibration_).n == 200
    assert model.confidence_of(X[kept]).mean() == pytest.approx(right[kept].mean(), abs=0.02)


def test_columns_and_score_are_fitted_without_the_rows_that_carry_a_promise() -> None:
    """A score that knew these rows would find each nearest to itself."""
    X, y, _ = strangers(400)
    given = {**QUICK, "epochs": 2, "accuracy": 0.7, "holdout": 0.5, "decide_by": "nearest"}
    with pytest.warns(UserWarning, match="every input will be refused"):
        model = OneVsAllClassifier(**given).fit(X, y)
    kept = np.random.RandomState(0).permutation(400)[:200]
    learned = np.delete(X, kept, 0)
    np.testing.assert_allclose(model.mean_, learned.mean(0), rtol=1e-12)
    np.testing.assert_allclose(model.scale_, learned.std(0), rtol=1e-12)
    nearest = there(model.evidence_)(model._said(X))["nearest"]
    assert nearest[kept].max() < np.delete(nearest, kept).min()


def test_copies_stay_on_one_side_and_count_as_one() -> None:
    X, y, of = strangers(100, each=8)
    with pytest.warns(UserWarning, match="with 30 examples.*every input will be refused"):
        model = OneVsAllClassifier(accuracy=0.7, **BY_HEART).fit(X, y)
    assert isinstance(model.threshold_, Threshold)
    assert model.threshold_.n == 30
    right = model.classes_[model.predict_proba(X).argmax(1)] == y
    known = [right[of == k].all() for k in range(100)]
    assert 70 <= sum(known) < 97  # all copies of a point, or none


@pytest.mark.slow
def test_a_group_stays_on_one_side_and_counts_as_one() -> None:
    """Eight rows near each of a hundred points: a network learns the point, not the row."""
    X, y, of = strangers(100, each=8, spread=0.02)
    given = {**BY_HEART, "accuracy": 0.7, "calibration": "top"}
    fooled = OneVsAllClassifier(**given).fit(X, y)
    assert isinstance(fooled.threshold_, Threshold)
    assert fooled.threshold_.promised  # rows that are not independent, and nobody said so
    assert fooled.threshold_.n == 240
    for groups in (of, [f"thing {k}" for k in of]):
        with pytest.warns(UserWarning, match="with 30 examples.*every input will be refused"):
            model = OneVsAllClassifier(**given).fit(X, y, groups=groups)
        assert there(model.calibration_).n == 30
    plain = OneVsAllClassifier(**BY_HEART).fit(X, y, groups=of)  # nothing is kept away
    assert plain.score(X, y) > 0.98


def test_groups_are_passed_on_by_scikit_learn() -> None:
    X, y = make_blobs(300, centers=2, cluster_std=0.1, random_state=0)
    groups = np.arange(300) // 3
    with config_context(enable_metadata_routing=True):
        model = OneVsAllClassifier(calibration="top", holdout=0.5, **QUICK)
        pipeline = make_pipeline(StandardScaler(), model.set_fit_request(groups=True))
        with pytest.warns(UserWarning, match="all 50 held-out answers are right"):
            pipeline.fit(X, y, groups=groups)


def test_a_class_with_one_example_and_a_column_that_never_varies() -> None:
    X, y = make_blobs(60, centers=2, random_state=0)
    X = np.column_stack([X, np.full(60, 1e9)])
    y[0] = 2
    model = OneVsAllClassifier(**QUICK).fit(X, y)
    assert model.predict_proba(X).shape == (60, 3)
    assert np.isfinite(model.predict_log_proba(X)).all()


def test_the_seed_decides_and_the_global_state_is_left_alone() -> None:
    X, y = make_blobs(60, centers=2, random_state=0)
    torch.manual_seed(3)
    state = torch.random.get_rng_state()
    one = OneVsAllClassifier(**QUICK).fit(X, y)
    assert torch.equal(torch.random.get_rng_state(), state)
    two = clone(one).fit(X, y)
    assert (one.predict_proba(X) == two.predict_proba(X)).all()
    back = pickle.loads(pickle.dumps(one))
    assert (one.predict_proba(X) == back.predict_proba(X)).all()


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_no_formulation_draws_from_the_global_generator(formulation: str) -> None:
    X, y = make_blobs(60, centers=2, random_state=0)
    state = torch.random.get_rng_state()
    OneVsAllClassifier(formulation, **{**QUICK, "epochs": 1}).fit(X, y)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_threads_with_the_same_seed_learn_the_same() -> None:
    X, y = make_blobs(200, centers=3, cluster_std=3, random_state=0)
    done = Event()

    def disturb() -> None:
        while not done.is_set():
            torch.randn(100)

    def fit(_: int) -> NDArray[np.float64]:
        return OneVsAllClassifier(**{**QUICK, "epochs": 10}).fit(X, y).predict_proba(X)

    with ThreadPoolExecutor(5) as pool:
        pool.submit(disturb)
        try:
            found = list(pool.map(fit, range(4)))
        finally:
            done.set()
    assert all((p == found[0]).all() for p in found)
    assert (fit(0) == found[0]).all()


def test_the_certainty_of_a_promise_may_have_its_old_name() -> None:
    X, y = make_blobs(400, centers=2, random_state=0)
    with pytest.warns(DeprecationWarning, match="called `certainty` now"):
        old = OneVsAllClassifier(accuracy=0.9, confidence=0.8, **QUICK).fit(X, y)
    new = OneVsAllClassifier(accuracy=0.9, certainty=0.8, **QUICK).fit(X, y)
    assert old.threshold_ == new.threshold_
    assert isinstance(new.threshold_, Threshold)
    assert new.threshold_.promise.certainty == 0.8


X2, Y2 = make_blobs(20, centers=2, random_state=0)
HOLED = np.where(np.arange(40).reshape(20, 2) == 3, np.nan, X2)
BAD: dict[str, tuple[dict[str, Any], Any, Any, str]] = {
    "only none": ({"none_label": 0}, X2, np.zeros(20, int), "no class; at least 2"),
    "one besides": ({"none_label": 0}, X2, Y2, "one class only"),
    "one class": ({}, X2, np.zeros(20, int), "one class only"),
    "inf": ({}, np.where(np.isnan(HOLED), np.inf, HOLED), Y2, "infinity"),
    "leak of nothing": ({"leak": 0.1}, X2, Y2, "none_label="),
    "numbers to predict": ({}, X2, X2[:, 0], "continuous"),
    "both": ({"threshold": 0.5, "accuracy": 0.9}, X2, Y2, "not both"),
    "no threshold": ({"reject_label": -1}, X2, Y2, "reject_label needs"),
    "a class": ({"threshold": 0.5, "reject_label": 1}, X2, Y2, "is one of the classes"),
    "minus one": ({"threshold": 0.5}, X2, -Y2, "is one of the classes"),
    "holdout": ({"accuracy": 0.9, "holdout": 1.5}, X2, Y2, "holdout must lie"),
    "nothing held": ({"accuracy": 0.9, "holdout": 0.01}, X2, Y2, "of 20 rows 0 are held out"),
    "no calibration": ({"calibration": "tpo"}, X2, Y2, "did you mean 'top'"),
    "reorders": ({"calibration": "isotonic"}, X2, Y2, "'temperature' and 'top' and 'beta' keep it"),
    "may reorder": (
        {"calibration": "temperature", "formulation": "softmax"},
        X2,
        Y2,
        "'top' and 'beta' keep it",
    ),
    "epochs": ({"epochs": 0}, X2, Y2, "at least 1"),
    "formulation": ({"formulation": "oav"}, X2, Y2, "did you mean 'ova'"),
}


def test_groups_that_do_not_fit_are_named() -> None:
    model = OneVsAllClassifier(accuracy=0.9, **QUICK)
    with pytest.raises(BadInput, match="20 rows but 3 groups; there must be one each"):
        model.fit(X2, Y2, groups=[1, 2, 3])
    with pytest.raises(BadInput, match="row 19 has no group"):
        model.fit(X2, Y2, groups=[*range(19), None])
    with pytest.raises(BadInput, match="of 1 rows 0 are held out"):
        model.fit(X2, Y2, groups=[1] * 20)


@pytest.mark.parametrize(("given", "X", "y", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_named(given: dict[str, Any], X: Any, y: Any, says: str) -> None:
    with pytest.raises(ValueError) as error:  # noqa: PT011  BadInput, or scikit-learn's own
        OneVsAllClassifier(**(QUICK | given)).fit(X, y)
    assert says in str(error.value)
    assert isinstance(error.value, BadInput) or says in ("infinity", "continuous")


APPLY = [n for n in SCORES if n not in ("nnguide", "react", "scale", "vim", "fdbd")]  # any head


@pytest.mark.parametrize("score", APPLY)
def test_every_score_that_applies_decides_keeps_its_promise_and_is_pickled(score: str) -> None:
    """Oracle: the score's own values on the rows to answer, and the threshold that was fitted by it."""
    X, y = make_blobs(600, centers=3, random_state=0)
    given = {**QUICK, "epochs": 20, "accuracy": 0.8}
    model = OneVsAllClassifier(decide_by=score, **given).fit(X, y)
    assert isinstance(model.threshold_, Threshold)
    assert model.threshold_.promised
    strange = np.concatenate([X, 40 * X])
    found = model.predict(strange)
    p = model._predictions(strange)
    values = p.confidence
    if score != "max_p":
        assert model.evidence_ is not None
        values = model.evidence_(model._said(strange))[score]
    best = model.classes_[p.prediction]
    assert (found == np.where(values > model.threshold_.value, best, -1)).all()
    assert (pickle.loads(pickle.dumps(model)).predict(strange) == found).all()
    plain = OneVsAllClassifier(**given).fit(X, y)
    assert (plain.confidence_of(X) == model.confidence_of(X)).all()


def test_a_number_is_compared_with_the_score_that_decides() -> None:
    X, y = make_blobs(300, centers=3, random_state=0)
    given = {**QUICK, "epochs": 5, "decide_by": "nearest"}  # distances of 0 to 2, negated
    assert (OneVsAllClassifier(threshold=-2.1, **given).fit(X, y).predict(X) != -1).all()
    assert (OneVsAllClassifier(threshold=0, **given).fit(X, y).predict(X) == -1).all()
    with pytest.raises(BadInput, match="did you mean 'nearest'"):
        OneVsAllClassifier(**{**given, "decide_by": "nearst"}).fit(X, y)


def weighed(**how: Any) -> OneVsAllClassifier:
    return OneVsAllClassifier(**(QUICK | how))


def test_rows_that_weigh_nothing_are_as_good_as_absent_and_heavy_ones_decide() -> None:
    X, y = make_blobs(300, centers=[[0, 0], [1, 0]], random_state=0)
    heavy = np.where(y == 1, 50.0, 1.0)
    plain = weighed().fit(X, y)
    by_row, by_class = (
        weighed().fit(X, y, sample_weight=heavy),
        weighed(class_weight={1: 50}).fit(X, y),
    )
    assert (by_row.predict(X) == 1).mean() > (plain.predict(X) == 1).mean() + 0.2
    np.testing.assert_allclose(by_row.predict_proba(X), by_class.predict_proba(X))
    np.testing.assert_array_equal(
        weighed().fit(X, y, sample_weight=np.full(300, 7.0)).predict_proba(X),
        plain.predict_proba(X),
    )
    wrong, nothing = np.append(y, 1 - y), np.repeat([1.0, 0.0], 300)
    told = weighed().fit(np.tile(X, (2, 1)), wrong, sample_weight=nothing)
    assert (told.predict(X) == y).mean() > (plain.predict(X) == y).mean() - 0.05
    with pytest.raises(BadInput, match="sample_weight must not be negative"):
        weighed().fit(X, y, sample_weight=-np.ones(300))


def test_balanced_classes_find_a_rare_one_also_beside_rows_of_none() -> None:
    X, y = make_blobs([400, 12, 50], centers=[[0, 0], [1.5, 0], [0, 9]], random_state=0)
    found = {
        how: weighed(class_weight=how, none_label=2).fit(X, y).predict(X)[y == 1]
        for how in (None, "balanced")
    }
    assert (found["balanced"] == 1).mean() > (found[None] == 1).mean() + 0.2


def test_on_request_the_loss_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = load_iris(return_X_y=True)
    weighed().fit(X, y)
    assert not capsys.readouterr().out
    weighed(verbose=True, epochs=25).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        f"epoch {k}/25" for k in (3, 6, 9, 12, 15, 18, 21, 24, 25)
    ]
    assert float(lines[-1].split()[-1]) < float(lines[0].split()[-1])


def test_a_coverage_and_a_leak_are_promised_as_fit_threshold_does() -> None:
    """The threshold is that of the held-out rows, whose promise the rows of none are part of."""
    X, y = make_blobs([120, 120, 90], random_state=0)
    labels = np.array(["a", "b", "none"])[y]
    model = OneVsAllClassifier(coverage=0.3, leak=0.4, none_label="none", **QUICK).fit(X, labels)
    found = there(model.threshold_)
    assert isinstance(found, Threshold)
    assert (found.promise.coverage, found.promise.leak) == (0.3, 0.4)
    assert found.promised
    assert found.n == round(0.3 * len(X))
    assert 0 < found.outside < found.n
    refused = model.predict(X) == "none"
    assert refused[y == 2].mean() > 0.6
    assert (~refused)[y != 2].mean() > 0.3
    alone = OneVsAllClassifier(coverage=0.9, **QUICK).fit(X, y).threshold_
    assert isinstance(alone, Threshold)
    assert (alone.promise.accuracy, alone.promise.coverage) == (None, 0.9)


def test_missing_numbers_are_medians_with_a_mark() -> None:
    """The same answers as a table in which this was done by hand."""
    X, y = load_iris(return_X_y=True)
    holed = X.copy()
    holed[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    holed[:, 3] = X[:, 3]  # a column that is whole has no mark
    model = OneVsAllClassifier(**QUICK).fit(holed, y)
    gaps = np.isnan(holed)
    filled = np.where(gaps, np.nanmedian(holed, axis=0), holed)
    standard = (filled - filled.mean(0)) / filled.std(0)
    by_hand = torch.from_numpy(np.hstack([standard, gaps[:, :3]]))
    with torch.inference_mode():
        z = model.network_(by_hand).double()
    wanted = FORMULATIONS[DEFAULT].log_probs(z).numpy()
    np.testing.assert_allclose(model.predict_log_proba(holed), wanted, rtol=1e-9, atol=1e-12)
    assert model.score(holed, y) > 0.9
    whole = OneVsAllClassifier(**QUICK).fit(X, y)
    assert np.isfinite(whole.predict_proba(np.full((1, 4), np.nan))).all()
    empty = X.copy()
    empty[:, 1] = np.nan
    assert OneVsAllClassifier(**QUICK).fit(empty, y).score(empty, y) > 0.9


def test_roc_auc_of_scikit_learn_has_a_value_where_probabilities_sum_to_one() -> None:
    X, y = load_iris(return_X_y=True)
    model = OneVsAllClassifier(normalised=True, **QUICK)
    assert cross_val_score(model, X, y, scoring="roc_auc_ovr", cv=2).min() > 0.9
