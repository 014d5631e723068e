"""The score that decides in a model folder: chosen on rows for that alone, kept, explained, exported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from typer.testing import CliRunner

import made_data
from narrowing import there
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import read_lines
from ova.modelfolder.answer import answers
from ova.modelfolder.evidence import read_evidence
from ova.modelfolder.export import export
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise, fit_threshold
from ova.predictions import NONE, NONE_LABEL, read
from ova.scores import Outputs, fit
from ova.scores.graph import Scored, exported
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import whole

QUICK = ("epochs=6", "batch_size=64")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of three clouds, trained once; each test fits another score to the same weights."""
    folder = tmp_path_factory.mktemp("score")
    made_data.crowd(folder / "crowd.csv")
    draw = np.random.default_rng(5)
    far = draw.uniform(-12, 12, (300, 2))
    made_data.write_csv(folder / "far.csv", ["x", "y"], far)
    carry_out(folder, "")
    return folder


def wish(at: Path) -> Request:
    return Request(
        data=at / "crowd.csv", outside=at / "far.csv", formulation="softmax", settings=QUICK
    )


def carry_out(at: Path, score: str, promise: Promise | None = None) -> Any:
    machine = Machine(accelerator="cpu")
    gathered = gather(wish(at))
    work = train(
        launch(machine), gathered, at / "m", machine, promise or Promise(accuracy=0.9), score
    )
    while True:
        try:
            next(work)
        except StopIteration as end:
            return end.value


def said(at: Path, name: str, rows: Any) -> Outputs:
    model = load(at / "m")
    f, z = model.outputs(rows.x)
    return Outputs(features=f.numpy(), logits=z.numpy(), target=rows.y.numpy(), normalised=True)


@pytest.mark.parametrize("score", ["energy", "nearest", "energy_nearest", "mds"])
def test_the_promise_is_that_of_the_score_on_the_calibration_rows(score: str, at: Path) -> None:
    """Oracle: the score fitted anew on all training rows at once, the threshold by hand."""
    found = carry_out(at, score, Promise(coverage=0.7))
    assert (found.evidence.name, found.evidence.why) == (score, "as asked")
    task = gather(wish(at)).task
    train_rows, held = (said(at, score, part) for part in (task.train, task.validation))
    fitted = fit(train_rows, held=held, names=[score], head=None)
    rows = said(at, score, task.evaluations["calibration"]())
    run = read(at / "m/run/predictions/calibration.parquet")
    values = fitted(rows)[score]
    by_hand = fit_threshold((values, run.correct), coverage=0.7)
    model = load(at / "m")
    assert model.threshold.value == pytest.approx(by_hand.value, rel=1e-4)
    assert model.threshold.answered == pytest.approx(by_hand.answered, abs=0.01)
    assert model.threshold == found.threshold == found.shown
    # What is answered is what the score says, and the confidence is still that of max p.
    answered = list(answers(model, [str(at / "crowd.csv")]))
    refused = [a.label == NONE_LABEL for a in answered]
    assert refused == [there(a.score) <= model.threshold.value for a in answered]
    assert 0 < sum(refused) < len(refused)
    plain = carry_out(at, "max_p")
    again = list(answers(load(at / "m"), [str(at / "crowd.csv")]))
    assert [a.confidence for a in again] == [a.confidence for a in answered]
    assert plain.calibration == found.calibration
    # Nothing is kept of the score before, and no training row where none is needed.
    kept = {path.name for path in (at / "m").rglob("*.safetensors")}
    assert kept == {"weights.safetensors"}
    assert not list((at / "m").rglob("scores.json"))


def test_the_rows_that_choose_carry_no_promise_and_are_in_no_report(at: Path) -> None:
    task = gather(wish(at)).task
    choosing, told = (task.evaluations[n]() for n in ("validation/outside", "ood/outside"))
    a, b = ({row.tobytes() for row in part.x.numpy()} for part in (choosing, told))  # type: ignore[attr-defined]
    assert (len(a), len(b), len(a & b)) == (100, 200, 0)
    rows = read_lines(at / "m/run/measurements.jsonl")
    assert not any("validation/outside" in r["dataset"] for r in rows)
    found = carry_out(at, "", Promise(leak=0.2))
    assert found.threshold.outside == 100  # half of the 200
    assert found.evidence.name in found.evidence.why or "AURC" in found.evidence.why


def test_the_choice_is_told_overridden_and_kept(at: Path) -> None:
    how = ["--outside", str(at / "far.csv"), "--formulation", "softmax", "--out", str(at / "m")]
    for setting in QUICK:
        how += ["--set", setting]
    told = CliRunner().invoke(app, ["train", str(at / "crowd.csv"), *how])
    assert told.exit_code == 0, told.output
    kept = json.loads((at / "m/model.json").read_text())["score"]
    assert f"the score {kept['name']} decides: {kept['why']}" in told.output
    assert "AURC" in kept["why"]
    told = CliRunner().invoke(app, ["train", str(at / "crowd.csv"), *how, "--score", "cosine"])
    assert "the score cosine decides: as asked" in told.output
    assert load(at / "m").evidence.name == "cosine"
    assert "of its score cosine" in (at / "m/report.html").read_text()
    told = CliRunner().invoke(app, ["train", str(at / "crowd.csv"), *how, "--score", "cosin"])
    assert "did you mean 'cosine'" in str(told.exception)


def test_an_explanation_names_the_nearest_training_rows(at: Path, tmp_path: Path) -> None:
    """Oracle: all distances between features, computed one by one in float64."""
    carry_out(at, "energy_nearest")
    model, gathered = load(at / "m"), gather(wish(at))
    train_rows = said(at, "", gathered.task.train)
    keep = train_rows.classes != NONE
    unit = train_rows.unit.astype(float)[keep]
    numbers = np.flatnonzero(keep)
    frame = whole(at / "crowd.csv")
    lines = [
        f"{a},{b}" for a, b in zip(frame.columns["x"][:5], frame.columns["y"][:5], strict=True)
    ]
    (tmp_path / "new.csv").write_text("\n".join(["x,y", *lines]) + "\n")
    told = CliRunner().invoke(
        app,
        [
            "predict",
            str(at / "m"),
            str(tmp_path / "new.csv"),
            "--explain",
            "-o",
            str(tmp_path / "o.jsonl"),
        ],
    )
    assert told.exit_code == 0, told.output
    x = model.preparation.encode(whole(tmp_path / "new.csv")).x
    f, _ = model.outputs(x)
    queries = f.double().numpy()
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    for row, q in zip(read_lines(tmp_path / "o.jsonl"), queries, strict=True):
        distance = np.linalg.norm(unit - q, axis=1)
        named = [part.rsplit(" at ", 1) for part in row["nearest"].split("; ")]
        assert len(named) == 3
        found = [float(d) for _, d in named]
        assert found == pytest.approx(np.sort(distance)[:3], abs=2e-3)
        places = {gathered.named(int(n)): d for n, d in zip(numbers, distance, strict=True)}
        for name, d in named:
            assert places[name] == pytest.approx(float(d), abs=2e-3)
            number = int(name.split()[1]) - 1
            assert f"({frame.columns['label'][number]})" in name
    carry_out(at, "energy")
    with pytest.raises(BadInput, match="decides by energy, which looks at no training rows"):
        list(answers(load(at / "m"), [str(tmp_path / "new.csv")], explain=True))


OFTEN = ("energy_nearest", "sirc", "mds")  # these look at everything there is
GRAPHS = [s if s in OFTEN else pytest.param(s, marks=pytest.mark.slow) for s in exported()]


@pytest.mark.slow
@pytest.mark.parametrize("score", GRAPHS)
def test_every_score_with_a_graph_decides_alike_in_onnx(
    score: str, at: Path, tmp_path: Path
) -> None:
    carry_out(at, score)
    model = load(at / "m")
    export(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    x = model.preparation.encode(whole(at / "crowd.csv")).x
    _, label, _, values = session.run(None, {"input": x.numpy()})
    expected = list(answers(model, [str(at / "crowd.csv")]))
    by_predict = np.array([there(a.score) for a in expected])
    size = np.maximum(np.abs(by_predict), 1)
    assert (np.abs(values - by_predict) < 1e-3 * size).all()
    names = [NONE_LABEL if k == NONE else model.classes[k] for k in label]
    near = np.abs(by_predict - model.threshold.value) < 1e-3 * size
    assert near.mean() < 0.2
    assert all(n == a.label for n, a, close in zip(names, expected, near, strict=True) if not close)


def test_a_graph_finds_training_rows_whose_features_are_zeros() -> None:
    rng = np.random.default_rng(0)
    f, queries = (rng.normal(size=(n, 6)).astype(np.float32) for n in (300, 50))
    f[::20] = 0
    fitted = fit(Outputs(features=f), names=["knn"])
    z = torch.zeros(50, 2)
    found = Scored(fitted)(torch.from_numpy(queries), z, z, True)
    np.testing.assert_allclose(found, fitted(Outputs(features=queries))["knn"], atol=1e-6)


def test_a_score_without_a_graph_says_which_have_one(at: Path, tmp_path: Path) -> None:
    carry_out(at, "entropy")
    with pytest.raises(
        BadInput, match=r"entropy cannot be written as ONNX.*--score.*energy_nearest"
    ):
        export(load(at / "m"), tmp_path / "m.onnx")


def test_no_more_rows_are_kept_than_is_said(at: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ova.modelfolder.deciding.MOST", 50)
    found = carry_out(at, "nearest").evidence
    assert len(found.bank.row) == len(found.examples) == 50
    model = load(at / "m")
    assert model.evidence.examples == found.examples
    with pytest.raises(BadInput, match="does not name the 50 training rows"):
        replace_examples(at / "m")


def replace_examples(folder: Path) -> None:
    (folder / "examples.json").write_text("[]")
    read_evidence(folder, json.loads((folder / "model.json").read_text()))


def test_a_score_that_cannot_be_fitted_costs_no_model(
    at: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise BadInput("row 3: features has a value that is not finite")

    monkeypatch.setattr("ova.modelfolder.deciding.fit", fails)
    assert carry_out(at, "").evidence.why.startswith("no other could be fitted: row 3")
    with pytest.raises(BadInput, match="row 3"):
        carry_out(at, "energy")
