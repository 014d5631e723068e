"""A model of few rows: all are trained on, each is judged by cross-fitting, and nothing is promised."""

from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import made_data
import ova
from made_encoders import ENCODERS
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import read_lines, read_object
from ova.modelfolder.folder import load
from ova.modelfolder.train import Trained, train
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import NONE, read
from ova.training.engine import Machine, launch
from ova.training.progress import carry_out
from ova.userdata.gather import gather
from ova.userdata.request import Request

PER_CLASS = 12


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OVA_FEATURES", raising=False)


def wish(at: Path, **more: object) -> Request:
    """Three topics of a dozen sentences, some of another topic than they say; two copies of the first."""
    torch.manual_seed(0)
    ENCODERS["bert"](at / "bert")
    made_data.sentences(at / "topics.csv", PER_CLASS)
    header, *lines = (at / "topics.csv").read_text().splitlines()
    odd = [line.replace(',"weather, today"', ",7") for line in lines[:3]]
    (at / "topics.csv").write_text(
        "\n".join([header, *odd, *lines[3:], lines[-1], lines[-1]]) + "\n"
    )
    given = {"data": at / "topics.csv", "text": "sentence", "label": "topic", **more}
    return Request(encoder=at / "bert", frozen=True, cross_fit=None, **given)  # type: ignore[arg-type]


def done(request: Request, out: Path, score: str = "") -> Trained:
    machine = Machine(accelerator="cpu")
    work = train(launch(machine), gather(request), out, machine, Promise(), score)
    return carry_out(work, lambda _: None)


def test_all_rows_are_trained_on_and_every_input_is_judged_once(tmp_path: Path) -> None:
    request = wish(tmp_path)
    trained, run = done(request, tmp_path / "m", "energy"), tmp_path / "m/run"
    assert isinstance(trained.threshold, Threshold)
    assert len(gather(request).task.train) == 3 * PER_CLASS + 2
    kept = read(run / "predictions/calibration.parquet")
    for name in ("validation", "test"):
        same = read(run / f"predictions/{name}.parquet")
        np.testing.assert_array_equal(same.log_p, kept.log_p)
    assert len(kept) == trained.threshold.n == 3 * PER_CLASS
    assert not trained.threshold.promised
    energy = np.asarray(kept.energy)
    assert trained.threshold.answered == np.mean(energy > trained.threshold.value) >= 0.95
    assert trained.threshold.accuracy == kept.correct[energy > trained.threshold.value].mean()
    assert [*trained.outcomes] == ["test, cross-fitted"]
    assert all("validation_loss" not in row for row in read_lines(run / "log.jsonl"))
    model = load(tmp_path / "m")
    f, _ = model.outputs(gather(request).task.train.x)  # type: ignore[attr-defined]
    np.testing.assert_allclose(f.mean(0), 0, atol=1e-3)  # of all rows: none was held out
    assert "cross-fitted" in (tmp_path / "m/report.html").read_text()


def test_the_rows_judged_are_not_told_by_the_head_that_has_seen_them(tmp_path: Path) -> None:
    """The three odd labels are learned by the final head sooner than by heads that never saw them."""
    request = wish(tmp_path, settings=("weight_decay=0.000001",))
    done(request, tmp_path / "m", "max_p")
    model, data = load(tmp_path / "m"), gather(request)
    crossed = read(tmp_path / "m/run/predictions/validation.parquet")
    _, z = model.outputs(data.task.validation.x)  # type: ignore[attr-defined]
    own = model.form.log_probs(z)[torch.arange(len(z)), data.task.validation.y]
    assert float(own.mean()) > float(np.mean(np.asarray(crossed.log_p)))


def test_training_again_is_the_same_model_and_a_promise_wants_another_folder(
    tmp_path: Path,
) -> None:
    request = wish(tmp_path)
    one = done(request, tmp_path / "m")
    before = read_object(tmp_path / "m/model.json")["sha256"]
    two = done(request, tmp_path / "m")
    assert one.threshold == two.threshold
    assert read_object(tmp_path / "m/model.json")["sha256"] == before
    command = ["train", str(request.data), "--text", "sentence", "--label", "topic", "--frozen",
               "--encoder", str(request.encoder), "--out", str(tmp_path / "m"), "--accuracy", ".6"]  # fmt: skip
    again = CliRunner().invoke(app, command)
    assert isinstance(again.exception, BadInput)
    assert "divided it otherwise" in str(again.exception)
    both = CliRunner().invoke(app, [*command, "--cross-fit"])
    assert "leave out --cross-fit" in str(both.exception)


def test_rows_of_none_and_test_rows_of_their_own(tmp_path: Path) -> None:
    request = wish(tmp_path, none="7")
    trained = done(request, tmp_path / "m")
    run = tmp_path / "m/run/predictions"
    inside, strange = read(run / "test.parquet"), read(run / "ood/none.parquet")
    every = read(run / "validation.parquet")
    assert (strange.target == NONE).all()
    assert (inside.target != NONE).all()
    assert len(inside) + len(strange) == len(every) == trained.threshold.n
    assert trained.threshold.none == len(strange)
    made_data.sentences(tmp_path / "more.csv", 5)
    own = done(wish(tmp_path, test=tmp_path / "more.csv"), tmp_path / "own")
    assert [*own.outcomes] == ["test"]  # by the final head, which has not seen them
    assert "of 15 answered" in own.outcomes["test"]


def test_what_needs_held_out_rows_says_so_until_a_promise_is_fitted(tmp_path: Path) -> None:
    request = wish(tmp_path)
    done(request, tmp_path / "m")
    folder, data = str(tmp_path / "m"), str(request.data)
    extend = ["extend", folder, data, "--label", "topic", "--data", data]
    (tmp_path / "in.csv").write_text("sentence\nrain and the sun\n")
    for command, said in [
        (["predict", folder, str(tmp_path / "in.csv"), "--sets"], "its rows are few"),
        (["predict", folder, str(tmp_path / "in.csv"), "--fdr", ".1"], "no row was held out"),
        (["monitor", folder, str(tmp_path / "in.csv")], "no row was held out"),
        ([*extend, "--out", str(tmp_path / "x")], "all of its few rows"),
    ]:
        found = CliRunner().invoke(app, command)
        assert isinstance(found.exception, BadInput), command
        assert said in str(found.exception)
    made_data.sentences(tmp_path / "later.csv", 40)
    command = ["promise", folder, str(tmp_path / "later.csv"), "--label", "topic", "--accuracy", ".5",
               "--out", str(tmp_path / "kept")]  # fmt: skip
    assert CliRunner().invoke(app, command).exit_code == 0
    assert load(tmp_path / "kept").threshold.promised


def test_from_python_a_promise_holds_rows_out(tmp_path: Path) -> None:
    request = wish(tmp_path)
    given = {"text": "sentence", "label": "topic", "encoder": str(request.encoder), "frozen": True}
    few = ova.train(request.data, **given)  # type: ignore[arg-type]
    assert not few.threshold.promised
    assert any("none is held out" in note for note in few.notes)
    asked = ova.train(request.data, accuracy=0.5, **given)  # type: ignore[arg-type]
    assert not any("none is held out" in note for note in asked.notes)
    held = ova.train(request.data, cross_fit=False, **given)  # type: ignore[arg-type]
    assert not any("none is held out" in note for note in held.notes)


@pytest.mark.parametrize("score", ["energy_nearest", "energy", "max_p"])
def test_new_inputs_are_answered_about_as_often_as_the_rows_that_were_judged(
    score: str, tmp_path: Path
) -> None:
    """The final head is another than those that the threshold comes from: their scores share a scale."""
    made_data.sentences(tmp_path / "new.csv", 100)
    trained = done(wish(tmp_path, test=tmp_path / "new.csv"), tmp_path / "m", score)
    assert float(trained.outcomes["test"].partition(" ")[0]) > 75
