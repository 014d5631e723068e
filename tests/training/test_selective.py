"""`ova.Selective`: any classifier with a calibration, a threshold that promises, and "none"."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import ova
from narrowing import there
from ova.errors import BadInput
from ova.posthoc.threshold import Threshold, fit_threshold

X, Y = make_classification(
    3000, n_features=8, n_informative=6, n_classes=3, class_sep=1.5, random_state=0
)
A, B, C = slice(0, 1000), slice(1000, 2000), slice(2000, 3000)
FITTED = {
    "logistic": LogisticRegression(max_iter=300).fit(X[A], Y[A]),
    "forest": RandomForestClassifier(30, random_state=0).fit(X[A], Y[A]),
    "bayes": GaussianNB().fit(X[A], Y[A]),
}


def promise(careful: ova.Selective) -> Threshold:
    assert isinstance(careful.threshold_, Threshold)
    return careful.threshold_


@pytest.mark.parametrize("name", FITTED)
def test_the_promise_is_that_of_the_held_out_rows(name: str) -> None:
    """Oracle: `fit_threshold` on the estimator's own numbers; the calibration keeps their order."""
    estimator = FITTED[name]
    careful = ova.Selective(estimator, accuracy=0.8).fit(X[B], Y[B])
    p = estimator.predict_proba(X[B])
    want = fit_threshold((p.max(1), p.argmax(1) == Y[B]), accuracy=0.8)
    assert want.promised
    assert (promise(careful).n, promise(careful).answered) == (want.n, want.answered)
    said, q = careful.predict(X[C]), estimator.predict_proba(X[C])
    assert (said != -1).tolist() == (q.max(1) > want.value).tolist()
    assert (said[said != -1] == q.argmax(1)[said != -1]).all()
    assert careful.predict_proba(X[C]).tolist() == q.tolist()
    assert careful.estimator_ is estimator


def test_the_confidence_is_calibrated() -> None:
    careful = ova.Selective(FITTED["bayes"], accuracy=0.8).fit(X[B], Y[B])
    assert careful.calibration_ is not None
    p = FITTED["bayes"].predict_proba(X[C])
    right = p.argmax(1) == Y[C]
    before, after = p.max(1), careful.confidence_of(X[C])
    assert abs(after.mean() - right.mean()) < abs(before.mean() - right.mean())
    assert (np.argsort(after, kind="stable") == np.argsort(before, kind="stable")).mean() > 0.9


def test_unfitted_it_is_trained_on_the_other_rows() -> None:
    careful = ova.Selective(GaussianNB(), coverage=0.5, holdout=0.4, random_state=0).fit(X, Y)
    assert promise(careful).n == 1200
    assert careful.estimator_.class_count_.sum() == 1800
    assert 0.2 < cross_val_score(clone(careful), X, Y, cv=3).mean() < 1


def test_copies_and_groups_count_once() -> None:
    twice = np.concatenate([X[B], X[B]]), np.concatenate([Y[B], Y[B]])
    careful = ova.Selective(FITTED["bayes"], coverage=0.5)
    assert promise(careful.fit(*twice)).n == 1000
    assert promise(careful.fit(X[B], Y[B], groups=np.arange(1000) // 10)).n == 100


@pytest.mark.parametrize("score", ["entropy", "any", "nearest", "cosine", "sirc"])
def test_another_score_decides(score: str) -> None:
    careful = ova.Selective(FITTED["logistic"], coverage=0.7, decide_by=score)
    careful.fit(X[B], Y[B], trained_on=(X[A], Y[A]))
    values = careful.score_of(X[C])
    assert ((careful.predict(X[C]) != -1) == (values > promise(careful).value)).all()
    assert (values > promise(careful).value).mean() > 0.65
    if score == "nearest":
        assert (careful.predict(X[C] + 100) == -1).all()


def test_a_leak_is_promised_by_outsiders() -> None:
    far = np.random.default_rng(0).normal(size=(400, 8)) * 8
    careful = ova.Selective(FITTED["logistic"], leak=0.1, decide_by="nearest")
    careful.fit(X[B], Y[B], trained_on=(X[A], Y[A]), outside=far[:200])
    assert (careful.predict(far[200:]) != -1).mean() <= 0.15
    assert (careful.predict(X[C]) != -1).mean() > 0.5


def test_texts_frames_and_names() -> None:
    draw = np.random.default_rng(0)
    words = {"fruit": ["apple", "pear", "plum"], "metal": ["iron", "zinc", "lead"]}
    rows = [(" ".join(draw.choice(words[k], 2)) + f" {i}", k) for i in range(200) for k in words]
    texts, names = map(list, zip(*rows, strict=True))
    pipeline = make_pipeline(CountVectorizer(), LogisticRegression())
    careful = ova.Selective(pipeline, threshold=0.8, calibration=None).fit(texts, names)
    assert careful.predict(["apple plum", "xylophone"]).tolist() == ["fruit", "none of the above"]
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    named = ova.Selective(GaussianNB(), threshold=0.8, reject_label=9, random_state=0).fit(frame, Y)
    assert set(named.predict(frame)) == {0, 1, 2, 9}
    again = pickle.loads(pickle.dumps(named))
    assert (again.predict(frame) == named.predict(frame)).all()


def test_a_label_that_is_unknown_is_wrong_where_it_is_answered() -> None:
    careful = ova.Selective(FITTED["bayes"], coverage=0.9)
    plain = promise(careful.fit(X[B], Y[B]))
    odd = promise(careful.fit(X[B], np.where(np.arange(1000) % 2, Y[B], 7)))
    assert there(odd.accuracy) < 0.6 < there(plain.accuracy)


def test_one_vs_all_probabilities_are_taken_as_they_are() -> None:
    small = ova.OneVsAllClassifier(epochs=3, random_state=0).fit(X[A], Y[A])
    with pytest.raises(BadInput, match="normalised=False"):
        ova.Selective(small, coverage=0.5).fit(X[B], Y[B])
    careful = ova.Selective(small, coverage=0.5, normalised=False).fit(X[B], Y[B])
    assert promise(careful).promised


def test_what_cannot_be_promised_is_said_and_refused() -> None:
    with pytest.warns(UserWarning, match="every input will be refused"):
        careful = ova.Selective(FITTED["bayes"], accuracy=0.9999).fit(X[B], Y[B])
    assert (careful.predict(X[C]) == -1).all()
    few = X[B][:3], Y[B][:3]
    with pytest.warns(UserWarning, match="confidences stay uncalibrated"):
        ova.Selective(FITTED["bayes"], threshold=0.5).fit(*few)


BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "nothing to keep": (GaussianNB(), {}, "give a promise .* or threshold="),
    "both": (GaussianNB(), {"accuracy": 0.9, "threshold": 0.5}, "give a promise"),
    "no probabilities": (LinearSVC(), {"accuracy": 0.9}, "LinearSVC has no predict_proba"),
    "a share": (GaussianNB(), {"accuracy": 0.9, "holdout": 1}, "strictly between 0 and 1"),
    "a score": (GaussianNB(), {"accuracy": 0.9, "decide_by": "max"}, "no score called 'max'"),
    "a calibration": (
        GaussianNB(),
        {"accuracy": 0.9, "calibration": "isotonic"},
        "order of inputs",
    ),
    "a reject label": (FITTED["bayes"], {"coverage": 0.9, "reject_label": 1}, "one of the classes"),
    "training rows": (FITTED["bayes"], {"coverage": 0.9, "decide_by": "knn"}, "trained_on="),
    "logits": (FITTED["bayes"], {"coverage": 0.9, "decide_by": "energy"}, "needs logits"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_has_its_sentence(name: str) -> None:
    estimator, settings, said = BAD[name]
    with pytest.raises(BadInput, match=said):
        ova.Selective(estimator, **settings).fit(X[B], Y[B])
    with pytest.raises(BadInput, match="3 labels and 4 rows"):
        ova.Selective(GaussianNB(), accuracy=0.9).fit(X[:4], Y[:3])
