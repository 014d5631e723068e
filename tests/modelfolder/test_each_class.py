"""A model folder that promises an accuracy for every class: kept, used, exported and said."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import made_data
import ova
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder import each_class
from ova.modelfolder.again import again
from ova.modelfolder.answer import Answer, answers, as_outputs
from ova.modelfolder.asking import refusal
from ova.modelfolder.export import export
from ova.modelfolder.folder import Model, load
from ova.modelfolder.promise import TARGETS
from ova.posthoc.per_class import EachClass, Thresholds
from ova.posthoc.threshold import fit_threshold
from ova.predictions import NONE_LABEL, read

ASKED = ("--accuracy", "0.8", "--per-class", "--score", "max_p", "--set", "epochs=5")


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, str]:
    """Two classes with many rows, one with 30, which is too rare for a promise."""
    at = tmp_path_factory.mktemp("each")
    draw, rows = np.random.default_rng(0), []
    for label, centre, count in (("a", -2, 500), ("b", 2, 400), ("rare", 9, 30)):
        rows += [[*(centre + draw.normal(size=2)), label] for _ in range(count)]
    data = made_data.write_csv(at / "x.csv", ["x", "y", "label"], rows)
    told = CliRunner().invoke(app, ["train", str(data), "-o", str(at / "model"), *ASKED])
    assert told.exit_code == 0, told.output
    return data, at / "model", told.output


@pytest.fixture(scope="module")
def model(case: tuple[Path, Path, str]) -> Model:
    return load(case[1])


def test_the_folder_keeps_what_the_calibration_rows_give(
    case: tuple[Path, Path, str], model: Model
) -> None:
    held = read(case[1] / "run/predictions/calibration.parquet")
    assert model.threshold == fit_threshold(held, 0.8, per="class")
    assert isinstance(model.threshold, Thresholds)
    assert [model.classes[k] for k in model.threshold.refused] == ["rare"]


def test_training_and_the_page_say_which_class_is_never_answered(
    case: tuple[Path, Path, str], model: Model
) -> None:
    assert "answer by class: accuracy >= 0.8 with certainty 0.95 for each of 2 of 3" in case[2]
    assert "\nnever rare: cannot be promised with " in case[2]
    page = (case[1] / "report.html").read_text()
    assert "By class" in page
    assert "never rare: cannot be promised with " in page


def test_each_class_is_compared_with_its_own_value(
    case: tuple[Path, Path, str], model: Model
) -> None:
    said, labels = list(answers(model, [str(case[0])])), []
    assert isinstance(model.threshold, Thresholds)
    value = {c: model.threshold.parts[k].value for k, c in enumerate(model.classes)}
    for row in said:  # of a refused input the runner-up is the best guess
        best = row.best_guess
        assert best is not None
        assert row.score is not None
        labels.append(best if row.score > value[best] else NONE_LABEL)
    assert [row.label for row in said] == labels
    assert {"a", "b", NONE_LABEL} == set(labels)
    told = CliRunner().invoke(app, ["predict", str(case[1]), str(case[0])])
    assert "(each class has a threshold)" in told.output
    whole = CliRunner().invoke(app, ["predict", str(case[1]), str(case[0]), "--threshold", "0"])
    assert "\trare\t" in whole.output


@pytest.mark.slow
def test_the_exported_graph_decides_alike(model: Model, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    assert export(model, tmp_path / "m.onnx") <= 1e-5
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    x = model.preparation.example(400, torch.Generator().manual_seed(3)) * 4
    label = session.run(["label"], {"input": x.numpy()})[0]
    p = as_outputs(model, *model.outputs(x)).said
    assert p is not None
    expected = np.where(model.threshold.answers(p.confidence, p.prediction), p.prediction, -1)
    assert label.tolist() == expected.tolist()
    assert len(set(expected)) == 3


def test_the_accuracy_is_chosen_on_rows_that_carry_no_promise(case: tuple[Path, Path, str]) -> None:
    held = read(case[1] / "run/predictions/calibration.parquet")
    validation = read(case[1] / "run/predictions/validation.parquet")
    for seen in (held, validation):
        found = each_class.promised(seen, held, EachClass(pool=True))
        a = each_class.target(seen, len(held), EachClass(pool=True))
        assert a in TARGETS
        assert found == fit_threshold(held, a, per="class", pool=True)


def test_thresholds_of_other_classes_are_refused(model: Model) -> None:
    row = json.loads(json.dumps(model.threshold.to_json()))
    assert each_class.from_json(row, 3) == model.threshold
    with pytest.raises(BadInput, match="not the thresholds of 4 classes"):
        each_class.from_json(row, 4)


def test_what_cannot_be_promised_for_each_class_is_refused_before_training(tmp_path: Path) -> None:
    data = str(made_data.crowd(tmp_path / "x.csv", 20))
    told = CliRunner().invoke(app, ["train", data, "--per-class", "--coverage", "0.9"])
    assert "only an accuracy can be promised for every class" in str(told.exception)
    told = CliRunner().invoke(app, ["train", data, "--pool-rare"])
    assert "add --per-class" in str(told.exception)


def test_it_is_tried_again_class_by_class(
    case: tuple[Path, Path, str], model: Model, tmp_path: Path
) -> None:
    assert again(model, case[0]).kept
    rows = [line.split(",") for line in case[0].read_text().splitlines()[1:]]
    swapped = [[x, y, "a" if k == "b" else k] for x, y, k in rows]
    drifted = made_data.write_csv(tmp_path / "d.csv", ["x", "y", "label"], swapped)
    found = again(model, drifted)
    assert not found.kept
    doubts = [line for line in found.lines if line.startswith("warning")]
    assert len(doubts) == 1
    assert "the promised accuracy of answers 'b' of 0.8 does not look kept" in doubts[0]


def test_from_python_a_refusal_says_what_its_class_was_promised(
    case: tuple[Path, Path, str], model: Model
) -> None:
    held = ova.load(case[1])
    assert "\n" not in repr(held)
    assert "for each of 2 of 3 classes" in repr(held)
    assert isinstance(model.shown, Thresholds)
    value = {c: model.shown.parts[k].value for k, c in enumerate(model.classes)}
    refused = [row for row in held.predict(case[0]) if row.label is None]
    assert refused
    for row in refused:
        assert str(row.why).endswith(f"is not above {value[str(row.best_guess)]:.4g}")
    rare = Answer("", NONE_LABEL, "rare", confidence=0.9, score=0.9)
    wanted = (
        "nothing is answered with 'rare': accuracy >= 0.8 with certainty 0.95 cannot be promised"
    )
    assert refusal(model, rare, None).startswith(wanted)
    assert refusal(model, rare, 0.95) == "confidence 0.9 is not above 0.95"
