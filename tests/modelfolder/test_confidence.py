"""Calibrated confidences of a model folder: honest, on one scale, and no decision changes."""

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from typer.testing import CliRunner

import made_data
from narrowing import there
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import sha256, write_json
from ova.modelfolder.answer import answers
from ova.modelfolder.confidence import confidence_of, fit, logit_of, on_scale, score_of
from ova.modelfolder.export import export
from ova.modelfolder.folder import Model, digest, load
from ova.modelfolder.train import train
from ova.nn.formulations import FORMULATIONS, Formulation
from ova.posthoc.calibration import CALIBRATIONS, Top
from ova.posthoc.calibration.scores import LOGIT, MAX_LOGIT
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import NONE_LABEL, Predictions, read
from ova.training.engine import Machine, launch
from ova.userdata.gather import Gathered, gather
from ova.userdata.request import Request
from ova.userdata.rows import whole


@dataclass(frozen=True)
class Case:
    data: Path
    gathered: Gathered
    out: Path


@pytest.fixture(scope="module", params=["ova", "ova-dm", "softmax"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    at = tmp_path_factory.mktemp(request.param)
    data = made_data.clouds(at / "clouds.csv")
    settings = ("epochs=8", "batch_size=64")
    gathered = gather(Request(data=data, formulation=request.param, settings=settings))
    machine = Machine(accelerator="cpu")
    wanted = Promise(coverage=0.5)
    for _ in train(launch(machine), gathered, at / "model", machine, wanted, "max_p"):
        pass
    return Case(data, gathered, at / "model")


@pytest.fixture(scope="module")
def model(case: Case) -> Model:
    return load(case.out)


def calibration(form: Formulation) -> Top:
    score = LOGIT if form.normalised else MAX_LOGIT
    return Top(n=50, normalised=form.normalised, a=0.3, b=-1.0, score=score)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_formulation_has_one_scale(name: str) -> None:
    """Above the threshold before calibration is above it after; the map is that of Top."""
    form = FORMULATIONS[name]
    draw = torch.Generator().manual_seed(0)
    z = -4 * torch.rand(500, 5, generator=draw, dtype=torch.float64)
    log_p = form.log_probs(z)
    said = Predictions.from_logits(z, log_p, np.zeros(500), normalised=form.normalised)
    found, top = calibration(form), log_p.argmax(1)
    c = confidence_of(found, form, z, top).numpy()
    np.testing.assert_allclose(c, found.confidence(said), atol=1e-12)
    for value in (*np.quantile(said.confidence, [0, 0.1, 0.5, 0.9, 1]), -math.inf, math.inf):
        raw = Threshold(float(value), Promise(accuracy=0.9), 100, 0.5)
        shown = on_scale(raw, found, form)
        clear = abs(said.confidence - value) > 1e-9
        assert (raw.answers(said.confidence) == shown.answers(c))[clear].all()
        assert replace(shown, value=raw.value) == raw
    p = confidence_of("", form, z, top).numpy()
    np.testing.assert_allclose(p, said.confidence, atol=1e-12)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_scores_are_exact_where_probabilities_have_rounded_to_one(name: str) -> None:
    form = FORMULATIONS[name]
    z = torch.tensor([[0.0, -40.0, -50.0], [-0.001, -30.0, -30.0], [-90.0, -95.0, -99.0]])
    top = torch.zeros(3, dtype=torch.long)
    narrow, wide = (score_of(form, x, top).double() for x in (z, z.double()))
    torch.testing.assert_close(narrow, wide, rtol=1e-6, atol=1e-6)
    for k in range(3):
        s = score_of(form, z, torch.full((3,), k))
        if form.normalised:
            others = [j for j in range(3) if j != k]
            slow = z[:, k].double() - z[:, others].double().exp().sum(1).log()
            torch.testing.assert_close(s.double(), slow, rtol=1e-6, atol=1e-6)
        else:
            assert s.equal(z[:, k])
    p = float(form.probs(torch.tensor([[-1.25, -1.5]]).double()).max())
    assert logit_of(form, p) == pytest.approx(0.25 if form.normalised else -1.25)


def test_predict_says_what_the_calibration_of_the_held_out_rows_says(
    case: Case, model: Model
) -> None:
    """Oracle: the method fitted and applied on the columns that the run wrote."""
    rows, test = (read(case.out / f"run/predictions/{n}.parquet") for n in ("calibration", "test"))
    after = CALIBRATIONS["top"].fit(rows).apply(test).confidence
    assert abs(after.mean() - test.correct.mean()) < 0.06  # of 270 rows; a standard error is .025
    said = {a.input: a for a in answers(model, [str(case.data)])}
    encoded = model.preparation.encode(whole(case.data)).x.numpy()
    place = {row.tobytes(): str(i + 1) for i, row in enumerate(encoded)}
    x = case.gathered.task.evaluations["test"]().x  # type: ignore[attr-defined]
    found = [said[place[row.numpy().tobytes()]] for row in x]
    np.testing.assert_allclose([there(a.confidence) for a in found], after, atol=1e-4)
    assert [a.label != NONE_LABEL for a in found] == model.threshold.answers(
        test.confidence
    ).tolist()
    for answer in found:
        confidence = there(answer.confidence)
        assert there(answer.runner_up_confidence) <= confidence + 1e-12
        assert (answer.label == NONE_LABEL) == (confidence < model.shown.value + 1e-7)


def earlier(case: Case, at: Path) -> Model:
    """The model as a folder without a calibration."""
    at.mkdir()
    for path in case.out.glob("*.*"):
        (at / path.name).write_bytes(path.read_bytes())
    (at / "calibration.json").unlink()
    content = json.loads((at / "model.json").read_text())
    del content["sha256"], content["parts"]["calibration.json"]
    write_json(at / "model.json", {**content, "sha256": digest(content)})
    return load(at)


def test_decisions_are_the_same_without_calibration_and_older_folders_load(
    case: Case, model: Model, tmp_path: Path
) -> None:
    before, after = (
        list(answers(m, [str(case.data)])) for m in (earlier(case, tmp_path / "x"), model)
    )
    assert [(a.label, a.runner_up) for a in before] == [(a.label, a.runner_up) for a in after]
    raw, sure = (np.array([a.confidence for a in said]) for said in (before, after))
    assert abs(raw - sure).max() > 0.01
    assert (np.diff(sure[np.argsort(raw, kind="stable")]) >= -1e-6).all()
    again = list(answers(model, [str(case.data)], threshold=model.shown.value + 1e-7))
    assert [a.label for a in again] == [a.label for a in after]


@pytest.mark.slow
def test_onnx_gives_the_confidence_that_predict_prints(
    case: Case, model: Model, tmp_path: Path
) -> None:
    assert export(model, tmp_path / "m.onnx") <= 1e-5
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    assert [o.name for o in session.get_outputs()] == ["probs", "label", "confidence", "score"]
    x = model.preparation.encode(whole(case.data)).x
    probs, _, confidence, _ = session.run(None, {"input": x.numpy()})
    said = [there(a.confidence) for a in answers(model, [str(case.data)])]
    np.testing.assert_allclose(confidence, said, atol=1e-5)
    assert abs(probs.max(1) - confidence).max() > 0.01  # the probabilities are left as they are


def test_the_threshold_is_told_on_the_scale_of_the_confidences(case: Case, model: Model) -> None:
    told = CliRunner().invoke(app, ["predict", str(case.out), str(case.data)])
    assert told.exit_code == 0
    assert f"(not above {model.shown.value:.6g})" in told.output
    assert model.shown.value != pytest.approx(model.threshold.value, abs=1e-3)
    assert "uncalibrated" not in told.output


def test_a_model_without_calibration_says_so(case: Case, tmp_path: Path) -> None:
    earlier(case, tmp_path / "x")
    told = CliRunner().invoke(app, ["predict", str(tmp_path / "x"), str(case.data)])
    assert "the confidences are uncalibrated: an earlier version" in told.output


def test_rows_that_teach_nothing_leave_a_reason() -> None:
    said = Predictions.from_probs([[0.9, 0.1]] * 30, [0] * 30, normalised=True)
    assert "all 30 held-out answers are right" in str(fit(said))


def test_a_calibration_of_another_kind_is_refused(case: Case, tmp_path: Path) -> None:
    earlier(case, tmp_path / "x")
    score = MAX_LOGIT if case.gathered.recipe.formulation == "softmax" else LOGIT
    row = Top(n=50, normalised=None, a=1.0, b=0.0, score=score).to_json()
    write_json(tmp_path / "x/calibration.json", row)
    content = json.loads((tmp_path / "x/model.json").read_text())
    del content["sha256"]
    content["parts"]["calibration.json"] = sha256(tmp_path / "x/calibration.json")
    write_json(tmp_path / "x/model.json", {**content, "sha256": digest(content)})
    with pytest.raises(BadInput, match="calibrated by 'top' of its"):
        load(tmp_path / "x")
