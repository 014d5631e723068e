"""The ONNX file of a OneVsAllClassifier answers as the classifier does, where training never looked too."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import make_blobs

from ova.errors import BadInput
from ova.nn.formulations import FORMULATIONS
from ova.scores import SCORES
from ova.scores.graph import exported
from ova.training import estimator_graph
from ova.training.estimator import OneVsAllClassifier

onnxruntime = pytest.importorskip("onnxruntime")
QUICK: dict[str, Any] = {"hidden": (16,), "epochs": 10, "random_state": 0}
X, Y = make_blobs(500, centers=3, cluster_std=2, random_state=0)
NEW = np.concatenate([X[::3] + 0.1, 30 * X[:20], np.full((1, 2), 1e6)])


def session(path: Path) -> Any:
    return onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])


def said(path: Path, rows: NDArray[Any]) -> tuple[dict[str, NDArray[Any]], NDArray[Any]]:
    """The outputs by name, and the labels that the metadata makes of them."""
    file = session(path)
    names = [output.name for output in file.get_outputs()]
    found = dict(zip(names, file.run(None, {"input": rows}), strict=True))
    facts = {k: json.loads(v) for k, v in file.get_modelmeta().custom_metadata_map.items()}
    classes = np.array(facts["ova.classes"], object)
    refused = facts["ova.reject_label"]
    return found, np.where(found["label"] < 0, refused, classes[found["label"]])


def check(model: OneVsAllClassifier, path: Path, rows: NDArray[Any] = NEW) -> None:
    """Every output is what the methods say, and every decision that of `predict`."""
    assert model.export(path) < 1e-6
    found, labels = said(path, rows)
    np.testing.assert_allclose(found["probs"], model.predict_proba(rows), atol=1e-6)
    np.testing.assert_allclose(found["confidence"], model.confidence_of(rows), atol=1e-6)
    np.testing.assert_allclose(found["score"], model.score_of(rows), rtol=1e-4, atol=1e-5)
    assert (labels == model.predict(rows)).all()


@pytest.mark.parametrize(
    "formulation",
    [
        pytest.param(n, marks=() if n in ("ova-dm", "ova-ball", "softmax") else pytest.mark.slow)
        for n in FORMULATIONS
    ],
)
def test_every_formulation_answers_in_onnx_as_in_python(formulation: str, tmp_path: Path) -> None:
    model = OneVsAllClassifier(formulation, coverage=0.3, **QUICK).fit(X, Y)
    check(model, tmp_path / "model.onnx")
    assert set(model.predict(NEW)) > {-1}


PROMISES: dict[str, dict[str, Any]] = {
    "nothing is refused": {"normalised": True},
    "top": {"coverage": 0.6, "calibration": "top"},
    "top of softmax": {"coverage": 0.6, "calibration": "top", "formulation": "softmax"},
    "beta": {"coverage": 0.6, "calibration": "beta", "normalised": True},
    "temperature": {"coverage": 0.6, "calibration": "temperature"},
    "all is refused": {"threshold": float("inf")},
}


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(given, id=name, marks=() if name in ("top", "beta") else pytest.mark.slow)
        for name, given in PROMISES.items()
    ],
)
def test_promises_and_calibrations_are_in_the_file(given: dict[str, Any], tmp_path: Path) -> None:
    check(OneVsAllClassifier(**QUICK, **given).fit(X, Y), tmp_path / "model.onnx")


@pytest.mark.parametrize(
    "score", [pytest.param(n, marks=() if n == "nearest" else pytest.mark.slow) for n in exported()]
)
def test_the_score_that_decides_is_in_the_file(score: str, tmp_path: Path) -> None:
    model = OneVsAllClassifier(decide_by=score, coverage=0.6, **QUICK).fit(X, Y)
    check(model, tmp_path / "model.onnx")


def test_gaps_and_labels_that_are_words(tmp_path: Path) -> None:
    holed = X.copy()
    holed[::7, 1] = np.nan
    labels = np.array(["ä", 'say "b"', "none"])[Y]
    model = OneVsAllClassifier(threshold=0.4, none_label="none", **QUICK).fit(holed, labels)
    check(model, tmp_path / "model.onnx", np.where(NEW > 20, np.nan, NEW))


def test_a_score_without_a_graph_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    odd = next(
        n for n in ("dismax", "logit_norm", "entropy") if n in SCORES and n not in exported()
    )
    model = OneVsAllClassifier(decide_by=odd, threshold=-1e9, **QUICK).fit(X, Y)
    with pytest.raises(
        BadInput, match=f"the score {odd} cannot be written.*decide_by= one of max_p"
    ):
        model.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_a_file_that_would_answer_otherwise_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = OneVsAllClassifier(threshold=0.5, **QUICK).fit(X, Y)
    monkeypatch.setattr(estimator_graph, "limit_of", lambda _: -1.0)
    with pytest.raises(BadInput, match="it was not kept"):
        model.export(tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())
