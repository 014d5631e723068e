"""Examples of none of the classes among the user's rows: trained on, never a class, never right."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import made_data
from ova.errors import BadInput
from ova.files import read_lines
from ova.modelfolder.answer import answers
from ova.modelfolder.folder import load
from ova.modelfolder.train import check_folder, train
from ova.posthoc.calibration import CALIBRATIONS
from ova.posthoc.threshold import Promise, fit_threshold
from ova.predictions import NONE, NONE_LABEL, Predictions, read
from ova.training.engine import Machine, launch
from ova.userdata.gather import Gathered, gather, sources_of
from ova.userdata.request import Request
from ova.userdata.split import HELD

QUICK = ("epochs=6", "batch_size=64")


@dataclass(frozen=True)
class Case:
    data: Path
    out: Path


def fit(gathered: Gathered, out: Path, wanted: Promise) -> None:
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gathered, out, machine, wanted, "max_p"):
        pass


def said(out: Path, name: str) -> Predictions:
    return read(out / f"run/predictions/{name}.parquet")


@pytest.fixture(scope="module", params=["ova", "ova-dm", "softmax"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    at = tmp_path_factory.mktemp(request.param)
    data = made_data.crowd(at / "crowd.csv")
    wish = Request(data=data, none="other", formulation=request.param, settings=QUICK)
    fit(gather(wish), at / "model", Promise(accuracy=0.9))
    return Case(data, at / "model")


def test_none_is_no_class_and_is_divided_by_lot(tmp_path: Path) -> None:
    gathered = gather(Request(data=made_data.crowd(tmp_path / "x.csv"), none="other"))
    task = gathered.task
    assert task.classes == ("a", "b", "c")
    sets = {name: make() for name, make in task.evaluations.items()}
    counts = {
        "train": int((task.train.y == NONE).sum()),
        "validation": int((task.validation.y == NONE).sum()),
        "calibration": int((sets["calibration"].y == NONE).sum()),
        "test": len(sets["ood/none"]),
    }
    assert sum(counts.values()) == 400
    for name, (share, _) in HELD.items():
        assert abs(counts[name] - 400 * share) < 4 * (400 * share * (1 - share)) ** 0.5
    assert (sets["test"].y != NONE).all()
    assert (sets["ood/none"].y == NONE).all()
    assert f"{counts['train']} to train" in gathered.notes[-1]


def test_test_rows_of_none_and_of_unknown_labels_are_told_apart(tmp_path: Path) -> None:
    data = made_data.crowd(tmp_path / "x.csv")
    rows = [[0, 0, "a"], [1, 1, "other"], [2, 2, "other"], [3, 3, "new"]]
    test = made_data.write_csv(tmp_path / "t.csv", ["x", "y", "label"], rows)
    task = gather(Request(data=data, none=" other ", test=test)).task
    sizes = {name: len(make()) for name, make in task.evaluations.items()}
    assert (sizes["test"], sizes["ood/none"], sizes["ood/test"]) == (1, 2, 1)


def test_an_answered_example_of_none_is_wrong_for_threshold_and_calibration(case: Case) -> None:
    """Oracle: both fitted anew on the columns of the run, where target -1 is never right."""
    model, rows = load(case.out), said(case.out, "calibration")
    strange = rows.target == NONE
    assert strange.sum() == pytest.approx(60, abs=29)
    assert not rows.correct[strange].any()
    found = fit_threshold((rows.confidence, rows.prediction == rows.target), 0.9)
    assert model.threshold.value == found.value
    assert model.threshold.n == len(rows)
    assert model.calibration == CALIBRATIONS["top"].fit(rows)


def test_training_on_none_makes_them_less_sure_than_the_classes(case: Case) -> None:
    inside, outside = said(case.out, "test"), said(case.out, "ood/none")
    assert outside.confidence.mean() < inside.confidence.mean() - 0.2
    rows = read_lines(case.out / "run/measurements.jsonl")
    auroc = [r["value"] for r in rows if r["dataset"] == "ood/none" and r["metric"] == "auroc"]
    assert max(auroc) > 0.85
    n = {r["dataset"]: r["n"] for r in rows if r["metric"] == "accuracy"}
    assert n["validation"] == (said(case.out, "validation").target != NONE).sum()
    labels = {a.label for a in answers(load(case.out), [str(case.data)])}
    assert labels <= {"a", "b", "c", NONE_LABEL}
    assert NONE_LABEL in labels


def test_the_same_rows_without_none_are_other_data(case: Case, tmp_path: Path) -> None:
    shutil.copytree(case.out, tmp_path / "model")
    recipe = load(case.out).facts["formulation"]
    gathered = gather(Request(data=case.data, formulation=recipe, settings=QUICK))
    with pytest.raises(BadInput, match="other data"):
        fit(gathered, tmp_path / "model", Promise(accuracy=0.9))


OTHER = [("text", "t"), ("label", "l"), ("none", "n"), ("drop", ("d",)), ("mirror", True)]


@pytest.mark.parametrize(("option", "value"), [*OTHER, ("skip_bad", True)])
def test_the_same_file_read_otherwise_is_other_data(case: Case, option: str, value: Any) -> None:
    wish = Request(data=case.data, none="other")
    task = gather(wish).task
    check_folder(case.out, task)
    assert sources_of(replace(wish, label="label")) == sources_of(wish)
    other = {**task.sources, **sources_of(replace(wish, **{option: value}))}
    with pytest.raises(BadInput, match="other data"):
        check_folder(case.out, replace(task, sources=other))


BAD = {
    "absent": ("othr", "no row is labelled 'othr'.*the labels are 'a', 'b', 'c', 'other'$"),
    "one class left": ("a", "at least two classes.*all 20 rows are 'b'"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_none_that_cannot_be_has_its_sentence(name: str, tmp_path: Path) -> None:
    none, says = BAD[name]
    if name == "absent":
        data = made_data.crowd(tmp_path / "x.csv", 10)
    else:
        rows = [[i, "ab"[i % 2]] for i in range(40)]
        data = made_data.write_csv(tmp_path / "x.csv", ["x", "label"], rows)
    with pytest.raises(BadInput, match=says):
        gather(Request(data=data, none=none))


def test_a_class_called_like_a_refusal_can_be_none(tmp_path: Path) -> None:
    rows = [[i + np.sin(i), ["a", "b", NONE_LABEL][i % 3]] for i in range(90)]
    data = made_data.write_csv(tmp_path / "x.csv", ["x", "label"], rows)
    with pytest.raises(BadInput, match="say --none 'none of the above'"):
        gather(Request(data=data))
    assert gather(Request(data=data, none=NONE_LABEL)).task.classes == ("a", "b")


KINDS = {
    "image": lambda at: Request(data=made_data.pictures(at / "colours"), none="red"),
    "text": lambda at: Request(
        data=made_data.sentences(at / "topics.csv"), text="sentence", label="topic", none="7"
    ),
    "table": lambda at: Request(data=made_data.table(at / "table.csv"), none="20"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data_can_have_examples_of_none(kind: str, tmp_path: Path) -> None:
    task = gather(KINDS[kind](tmp_path)).task
    assert len(task.classes) == 2
    assert set(task.train.y.tolist()) == set(task.validation.y.tolist()) == {NONE, 0, 1}
    assert set(task.evaluations["test"]().y.tolist()) == {0, 1}
