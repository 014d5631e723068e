"""`ova score` and `evaluate_scores`: every score that applies, with the numbers of the metrics themselves."""

import json
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from made_outputs import network
from ova.cli.app import app
from ova.errors import BadInput
from ova.metrics import DETECTION, Draws
from ova.metrics.ranking import auroc, rank
from ova.metrics.scored import evaluate_scores
from ova.metrics.selective import MIXED, aurc, mixture
from ova.scores import SCORES, Outputs, fit

NET = network(K=6)
SETS = {
    "train": NET.inside(400),
    "test": NET.inside(120, seed=4),
    "held": NET.inside(100, seed=5),
    "near": NET.outside(80),
    "far": NET.outside(60, seed=9),
}


@pytest.fixture
def folder(tmp_path):
    for name, rows in SETS.items():
        np.savez(
            tmp_path / f"{name}.npz", features=rows.features, logits=rows.logits, labels=rows.target
        )
    return tmp_path


def ran(folder, *words):
    files = [str(folder / w) if w.endswith((".npz", ".json", ".npy")) else w for w in words]
    return CliRunner().invoke(app, ["score", *files])


def test_every_score_is_printed_and_written_with_exact_values(folder):
    result = ran(
        folder, "train.npz", "test.npz", "--outside", "near.npz", "--outside", "far.npz",
        "--validation", "held.npz", "--bootstrap", "20", "--json", "out.json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    for title in ("accuracy", "mean over outside sets", "near", "far", "mixed AURC"):
        assert title in result.output
    assert all(f"\n {name} " in result.output for name in SCORES)
    written = json.loads((folder / "out.json").read_text())
    assert (written["head"], written["left_out"]) == ("found", {})
    rows = written["rows"]
    assert {(r["dataset"], r["metric"], r["score"]) for r in rows} == {
        (dataset, metric, score)
        for score in SCORES
        for table, datasets in (
            (DETECTION, ["ood/near", "ood/far"]),
            (MIXED, ["test", "test+ood/near", "test+ood/far"]),
        )
        for metric in table
        for dataset in datasets
    }
    assert all(r["low"] <= r["high"] for r in rows)
    fitted = fit(SETS["train"], held=SETS["held"])
    a, b = fitted(SETS["test"])["energy"], fitted(SETS["near"])["energy"]
    right = SETS["test"].logits.argmax(1) == SETS["test"].target
    values = {(r["dataset"], r["metric"]): r["value"] for r in rows if r["score"] == "energy"}
    assert values["ood/near", "auroc"] == pytest.approx(auroc(rank(a, b)))
    assert values["test+ood/near", "aurc"] == pytest.approx(aurc(mixture(a, right, b)))
    assert written["accuracy"] == pytest.approx(right.mean())


def test_the_function_gives_the_rows_of_the_command(folder):
    ran(folder, "train.npz", "test.npz", "--outside", "far.npz", "--json", "out.json",
        "--bootstrap", "15", "--score", "knn,max_p")  # fmt: skip
    fitted = fit(SETS["train"], names=["knn", "max_p"])
    rows = evaluate_scores(fitted, SETS["test"], {"far": SETS["far"]}, Draws(count=15))
    assert rows == json.loads((folder / "out.json").read_text())["rows"]
    plain = evaluate_scores(fitted, SETS["test"], {"far": SETS["far"]})
    assert [r["value"] for r in plain] == [r["value"] for r in rows]
    assert "low" not in plain[0]


def test_features_alone_have_no_answers_to_be_right_and_leave_out_what_needs_more(folder):
    for name in ("train", "test", "far"):
        np.savez(folder / name, feat_list=SETS[name].features, label_list=SETS[name].target)
    result = ran(folder, "train.npz", "test.npz", "--outside", "far.npz", "--bootstrap", "0")
    assert result.exit_code == 0, result.output
    assert "left out: max_logit, energy, logit_norm" in result.output
    assert ": it needs logits" in result.output
    assert "AURC" not in result.output
    assert "accuracy" not in result.output


def test_probabilities_one_per_class_are_taken(folder):
    for name in ("train", "test", "far"):
        p = 1 / (1 + np.exp(-SETS[name].logits))
        np.savez(folder / name, probs=p, target=SETS[name].target)
    words = ("train.npz", "test.npz", "--outside", "far.npz", "--bootstrap", "0")
    assert "sum to" in str(ran(folder, *words).exception)
    result = ran(folder, *words, "--one-vs-all")
    assert result.exit_code == 0, result.output
    assert "\n any " in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train.npz", "train.npz", "--outside", "far.npz"), "also the training file"),
        (
            ("train.npz", "test.npz", "--outside", "far.npz", "--validation", "test.npz"),
            "also --validation",
        ),
        (("train.npz", "near.npz", "--outside", "far.npz"), "target -1"),
        (("train.npz", "test.npz", "--outside", "far.npz", "--score", "engery"), "did you mean"),
        (("train.npz", "none.npz", "--outside", "far.npz"), "there is no file"),
        (("train.npz", "test.npz", "--outside", "far.npz", "--outside", "far.npz"), "given twice"),
    ],
)
def test_what_cannot_be_measured_is_refused(folder, words, message):
    result = ran(folder, *words)
    assert isinstance(result.exception, BadInput)
    assert message in str(result.exception)


def test_a_set_without_rows_is_refused():
    fitted = fit(SETS["train"], names=["energy"])
    with pytest.raises(BadInput, match="no rows"):
        evaluate_scores(fitted, Outputs(logits=np.zeros((0, 6))), {})


def test_arrays_of_any_name_are_those_that_columns_names(folder, tmp_path):
    """The same numbers as under our names, and in an array of a usual name something else."""
    strange = tmp_path / "strange"
    strange.mkdir()
    for name, rows in SETS.items():
        other: dict[str, Any] = {
            "Features": np.zeros((len(rows.features), 2)),
            "label": np.zeros(3),
        }
        other |= {} if name in ("near", "far") else {"gold": rows.target}
        np.savez(strange / f"{name}.npz", hidden=rows.features, z=rows.logits, **other)
    layer: dict[str, Any] = {
        "weight": np.eye(6, SETS["train"].features.shape[1]),
        "bias": np.arange(6.0),
    }
    np.savez(folder / "head.npz", **layer)
    np.savez(strange / "head.npz", kernel=layer["weight"], offset=layer["bias"])
    words = [
        "train.npz",
        "test.npz",
        "--outside",
        "near.npz",
        "--bootstrap",
        "0",
        "--score",
        "knn,vim",
    ]
    words += ["--head", "head.npz", "--json", "out.json"]
    said = ["features=hidden", "logits=z", "target=gold", "weight=kernel", "bias=offset"]
    telling = [word for each in said for word in ("--columns", each)]
    assert ran(folder, *words).exit_code == 0
    result = ran(strange, *words, *telling)
    assert result.exit_code == 0, result.output
    wanted = json.loads((folder / "out.json").read_text())
    assert wanted["rows"]
    assert json.loads((strange / "out.json").read_text()) == wanted


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("features=depth", "far.npz has no 'depth' \\(--columns features\\); it holds features"),
        ("weight=kernel", "train.npz has no 'kernel'"),
        ("features=a,b", "features is one column"),
        ("probs=a,b", "probs is one array"),
        ("id=a", "NAME is one of features, logits, probs, target, weight, bias"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_what_is(folder, said, message):
    words = ("train.npz", "test.npz", "--outside", "far.npz", "--columns", said, "--json", "o.json")
    found = ran(folder, *words).exception
    assert isinstance(found, BadInput)
    with pytest.raises(BadInput, match=message):
        raise found
    assert not (folder / "o.json").exists()
