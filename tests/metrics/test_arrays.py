"""Metrics of plain arrays: `ova.evaluate`, a function for every metric, and batches that are taken in turn."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn import metrics as theirs

import ova
from ova.errors import BadInput
from ova.metrics import DETECTION, METRICS, Accumulator
from ova.metrics.evaluate import evaluate as measure
from ova.predictions import Predictions

DRAW = np.random.default_rng(0)
P = DRAW.dirichlet(np.full(3, 0.5), 400)
Y = np.array([DRAW.choice(3, p=row) for row in P])
Q = DRAW.dirichlet(np.full(3, 3.0), 90)
SAID = Predictions.from_probs(P, Y, normalised=True, keep_probs=True)
FAR = Predictions.from_probs(Q, np.full(90, -1), normalised=True, keep_probs=True)
COLUMNS = {"target": Y, **{f"p_{k}": P[:, k] for k in range(3)}}
NAMES = np.array(["b", "c", "a"])  # of the columns, in their order
SOURCES: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "arrays": ((Y, P), {}),
    "lists": ((Y.tolist(), P.tolist()), {}),
    "tensors": ((torch.tensor(Y), torch.tensor(P, requires_grad=True)), {}),
    "names": ((NAMES[Y], P), {"labels": NAMES}),
    "pandas": ((pd.Series(Y), pd.DataFrame(P)), {}),
    "one frame": ((pd.DataFrame(COLUMNS),), {}),
    "polars": ((pl.DataFrame(COLUMNS),), {}),
    "predictions": ((SAID,), {}),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_is_measured_as_predictions_are(source: str) -> None:
    args, more = SOURCES[source]
    want, curves = measure({"test": SAID, "ood/outside": FAR})
    found = ova.evaluate(*args, ood=Q, **more)
    assert list(found) == want
    assert list(found.curves) == curves


def test_sets_by_their_names() -> None:
    found = ova.evaluate({"test": SAID, "ood/far": FAR})
    assert list(found) == list(ova.evaluate(Y, P, ood={"far": Q}))
    shifted = ova.evaluate(Y, P, shift={"fog/2": (Y, P[::-1])})
    assert shifted.value("accuracy", "shift/fog/2") == (P[::-1].argmax(1) == Y).mean()


def test_it_is_a_table() -> None:
    found = ova.evaluate(Y, P, ood=Q, bootstrap=20)
    columns = found.to_dict()
    assert columns["metric"] == [row["metric"] for row in found]
    frame = found.to_pandas()
    assert len(frame) == len(found)
    assert {"dataset", "metric", "value", "n", "score", "low", "high"} <= {*frame.columns}
    assert repr(found).startswith(f"{len(found)} measurements: test accuracy ")
    assert found._repr_html_().count("<tr>") == min(len(found), 50) + 1
    with pytest.raises(KeyError, match="no 'acuracy' of 'test' was measured"):
        found.value("acuracy")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_a_function(name: str) -> None:
    found = getattr(ova.metrics, name)
    assert found(Y, P) == METRICS[name](SAID)
    assert found(SAID) == METRICS[name](SAID)
    assert found.__name__ == name
    assert METRICS[name].about[1:] in found.__doc__
    assert pickle.loads(pickle.dumps(found)) is found
    assert name in dir(ova.metrics)


@pytest.mark.parametrize("name", DETECTION)
def test_every_detection_metric_is_a_function_of_two_sets(name: str) -> None:
    inside, outside = P.max(1), torch.tensor(Q.max(1))
    rows, _ = measure({"test": SAID, "ood/outside": FAR})
    want = next(r for r in rows if r["metric"] == name and r["score"] == "max_p")
    assert getattr(ova.metrics, name)(inside, outside) == want["value"]


def test_they_agree_with_scikit_learn() -> None:
    assert ova.metrics.accuracy(Y, P) == theirs.accuracy_score(Y, P.argmax(1))
    assert ova.metrics.nll(Y, P) == pytest.approx(theirs.log_loss(Y, P))
    two = P[:, 0] / (P[:, 0] + P[:, 1])
    y = (Y == 0).astype(int)
    assert ova.metrics.brier(y, two) == pytest.approx(2 * theirs.brier_score_loss(y, two))
    c = np.concatenate([P.max(1), Q.max(1)])
    known = np.arange(len(c)) < len(P)
    want = theirs.roc_auc_score(known, c)
    assert ova.metrics.auroc(P.max(1), Q.max(1)) == pytest.approx(want)


def test_one_vs_all_is_said_and_never_guessed() -> None:
    with pytest.raises(BadInput, match="normalised=False"):
        ova.metrics.ece(Y, P / 2)
    assert ova.metrics.ece(Y, P / 2, normalised=False) == METRICS["ece"](
        Predictions.from_probs(P / 2, Y, normalised=False)
    )


BAD: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "no probabilities": ((Y,), {}, "targets come with probabilities"),
    "logits": ((Y, 9 * P), {}, "logits must become probabilities"),
    "too few": ((Y[:5], P), {}, "there are 400 rows"),
    "ragged": (([0, 1], [[0.5, 0.5], [1.0]]), {}, "rows of one length"),
    "words as probabilities": (([0], [["a", "b"]]), {}, "must be numbers"),
    "whole numbers": (([0, 1], [1, 0]), {}, "must be a matrix"),
    "an unknown name": ((NAMES[Y], P), {"labels": ["a", "b", "z"]}, "row .*'c' is none of"),
    "too few names": ((["a"] * 400, P), {}, "1 names for 3 columns; labels="),
    "none among the test rows": ((np.full(400, -1), P), {}, "belongs in an OOD set"),
    "other classes outside": (
        (Y, P),
        {"ood": Q[:, :2] / Q[:, :2].sum(1)[:, None]},
        "has 2 classes",
    ),
    "a shift without a severity": ((Y, P), {"shift": {"fog": (Y, P)}}, "as 'fog/3'"),
    "sets and more": (({"test": SAID},), {"ood": Q}, "holds them all"),
    "both": ((SAID, P), {}, "their own probabilities"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_measured_has_its_sentence(name: str) -> None:
    args, more, said = BAD[name]
    with pytest.raises(BadInput, match=said):
        ova.evaluate(*args, **more)


def batches(seen: Accumulator, rows: slice, size: int) -> Accumulator:
    for start in range(rows.start, rows.stop, size):
        part = slice(start, min(start + size, rows.stop))
        seen.update(torch.tensor(Y[part]), torch.tensor(P[part]))
    return seen


@pytest.mark.parametrize("size", [1, 7, 400])
def test_batches_in_turn_are_all_at_once(size: int) -> None:
    seen = batches(Accumulator(keep_probs=True), slice(0, 400), size)
    seen.update_outside(Q[:50])
    seen.update_outside(Q[50:])
    want = ova.evaluate(Y, P, ood=Q)
    assert list(seen.compute()) == list(want)
    assert list(seen.compute(bootstrap=5)) == list(ova.evaluate(Y, P, ood=Q, bootstrap=5))


def test_processes_are_merged() -> None:
    first, second = (batches(Accumulator(), rows, 50) for rows in (slice(0, 150), slice(150, 400)))
    arrived = pickle.loads(pickle.dumps(second))
    assert len(first.merge(arrived)) == 400
    assert len(second) == 250
    want = {(r["dataset"], r["metric"]): r["value"] for r in ova.evaluate(Y, P)}
    want["test", "ece_classwise"] = None  # the matrix was not kept
    assert {(r["dataset"], r["metric"]): r["value"] for r in first.compute()} == want


def test_an_accumulator_refuses_other_models_and_starts_anew() -> None:
    seen = Accumulator()
    with pytest.raises(BadInput, match="nothing was seen yet"):
        seen.compute()
    seen.update(Y, P)
    with pytest.raises(BadInput, match="2 classes and normalised=True, those before have 3"):
        seen.update([0], [[0.5, 0.5]])
    assert len(seen) == 400
    seen.reset()
    seen.update([0], [[0.5, 0.5]])
    assert repr(seen) == "Accumulator of 1 predictions"
