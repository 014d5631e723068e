"""A promised leak rests on held-out examples of no class; and the weights are on the disk once."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import sha256
from ova.modelfolder.folder import load
from ova.modelfolder.promise import choose, half, outcomes
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise, fit_threshold
from ova.predictions import NONE, Predictions, read
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request

QUICK = ("epochs=6", "batch_size=64")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    at = tmp_path_factory.mktemp("leak")
    draw = np.random.default_rng(5)
    outside = made_data.write_csv(at / "far.csv", ["x", "y"], draw.uniform(-12, 12, (301, 2)))
    return made_data.crowd(at / "crowd.csv"), outside


def fit(wish: Request, out: Path, wanted: Promise, score: str = "max_p") -> None:
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gather(wish), out, machine, wanted, score):
        pass


SOURCES: dict[str, dict[str, Any]] = {
    "outside": {"outside": True},
    "none": {"none": "other"},
    "both": {"outside": True, "none": "other"},
}


@pytest.mark.parametrize("source", SOURCES)
def test_the_leak_rests_on_one_part_and_is_reported_on_the_other(
    source: str, files: tuple[Path, Path], tmp_path: Path
) -> None:
    """Oracle: the rows of the run picked by hand; no row is on both sides."""
    data, far = files
    given = {**SOURCES[source]}
    if given.get("outside"):
        given["outside"] = far
    out = tmp_path / "model"
    fit(Request(data=data, settings=QUICK, **given), out, Promise(leak=0.1))
    rows = read(out / "run/predictions/calibration.parquet")
    held = rows.confidence[rows.target == NONE].tolist()
    if "outside" in given:
        c = read(out / "run/predictions/ood/outside.parquet").confidence
        assert len(c) == 201  # a third of 301 may choose the score, and does nothing else
        assert len(read(out / "run/predictions/validation/outside.parquet")) == 100
        chosen = set(half(201, 0))
        assert len(chosen) == 101
        held += [c[i] for i in chosen]
        rest = np.array([c[i] for i in range(201) if i not in chosen])
    found = load(out).threshold
    by_hand = fit_threshold(rows, leak=0.1, outside=np.array(held, dtype=np.float64))
    assert found == by_hand
    assert found.promised
    assert found.outside == len(held)
    assert found.leak is not None
    assert found.leak <= 0.1
    names = ["calibration", "test", "ood/outside"][: 2 + ("outside" in given)]
    seen = {name: read(out / f"run/predictions/{name}.parquet") for name in names}
    shown = dict(outcomes(seen, found, 0))
    assert list(shown) == names[1:]
    if "outside" in given:
        share = 100 * (rest > found.value).mean()
        assert shown["ood/outside"] == f"{share:.1f} % of 100 answered"


def test_test_rows_of_none_are_part_of_what_is_told_about_the_test() -> None:
    """The promise counts them, so the test does; what they do alone is told as well."""

    def said(target: int, confidence: list[float]) -> Predictions:
        n = len(confidence)
        y, k = np.full(n, target, np.int32), np.zeros(n, np.int32)
        return Predictions(
            id=np.arange(n), target=y, prediction=k, confidence=np.array(confidence), classes=2,
            normalised=False,
        )  # fmt: skip

    found = fit_threshold(([0.5, 0.9], [True, True]), coverage=0.01)
    found = replace(found, value=0.5)
    rows = {"test": said(0, [0.9, 0.8, 0.6]), "ood/none": said(NONE, [0.7, 0.5])}
    assert dict(outcomes(rows, found, 0)) == {
        "test": "80.0 % of 5 answered, 75.0 % of them right",
        "ood/none": "50.0 % of 2 answered",
    }
    del rows["ood/none"]
    rows["validation"] = rows["test"]
    assert dict(outcomes(rows, found, 0)) == {
        "test": "100.0 % of 3 answered, 100.0 % of them right"
    }


def test_the_promise_of_a_leak_is_kept() -> None:
    """Of 200 promises on fresh examples at most one in twenty is broken, and they are not loose."""
    draw = np.random.default_rng(0)
    broken, measured = 0, []
    for _ in range(200):
        c = draw.beta(5, 2, 400)
        rows = Predictions(
            id=np.arange(400),
            target=np.zeros(400, np.int32),
            prediction=np.zeros(400, np.int32),
            confidence=c,
            classes=2,
            normalised=False,
        )
        found = choose(rows, rows, Promise(leak=0.1), draw.beta(2, 3, 150))
        leaked = (draw.beta(2, 3, 20_000) > found.value).mean()
        broken += bool(leaked > 0.1)
        measured.append(leaked)
    assert broken <= 0.05 * 200 + 3 * np.sqrt(200 * 0.05 * 0.95)
    assert np.mean(measured) > 0.04


def test_what_can_never_be_promised_is_said_before_training(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    bad = {
        "--outside DATA, or rows with a label that --none names": Promise(leak=0.05),
        "leak must lie strictly between 0 and 1, not 5": Promise(leak=5.0),
        "accuracy must lie strictly between 0 and 1, not 95": Promise(accuracy=95.0),
    }
    for says, wanted in bad.items():
        with pytest.raises(BadInput, match=says):
            fit(Request(data=files[0]), tmp_path / "model", wanted)
        assert not (tmp_path / "model").exists()


def test_the_command_promises_a_leak_and_says_what_came_of_it(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    data, far = files
    how = ["--out", str(tmp_path / "m"), "--set", "epochs=3", "--set", "batch_size=64"]
    told = CliRunner().invoke(
        app, ["train", str(data), "--none", "other", "--outside", str(far), "--leak", "0.2", *how]
    )
    assert told.exit_code == 0, told.output
    assert "leak <= 0.2 with certainty 0.95" in told.output
    for name in ("test", "ood/none", "ood/outside"):
        assert f"{name}: " in told.output
    assert "% of 100 answered" in told.output


def test_the_certainty_may_have_its_old_name(files: tuple[Path, Path], tmp_path: Path) -> None:
    how = ["--out", str(tmp_path / "m"), "--set", "epochs=1", "--accuracy", "0.5"]
    told = CliRunner().invoke(app, ["train", str(files[0]), *how, "--confidence", "0.8"])
    assert told.exit_code == 0, told.output
    assert "--confidence is called --certainty now" in told.output
    assert "accuracy >= 0.5 with certainty 0.8" in told.output
    assert "--confidence" not in CliRunner().invoke(app, ["train", "--help"]).output


def weights(out: Path) -> list[str]:
    return sorted(str(p.relative_to(out)) for p in out.rglob("*.safetensors"))


def test_weights_are_kept_once_and_another_promise_needs_no_training(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    wish, out = Request(data=files[0], settings=QUICK), tmp_path / "model"
    fit(wish, out, Promise(coverage=0.5))
    assert weights(out) == ["weights.safetensors"]
    first, log = sha256(out / "weights.safetensors"), sha256(out / "run/log.jsonl")
    fit(wish, out, Promise(coverage=0.9))  # the run is complete
    assert load(out).threshold.promise.coverage == 0.9
    before = (out / "run/measurements.jsonl").read_text()
    (out / "run/measurements.jsonl").unlink()
    fit(wish, out, Promise(coverage=0.9))  # it measures again, with the same weights
    assert (out / "run/measurements.jsonl").read_text() == before
    assert weights(out) == ["weights.safetensors"]
    assert (sha256(out / "weights.safetensors"), sha256(out / "run/log.jsonl")) == (first, log)
    load(out)


def test_a_model_whose_last_step_was_cut_off_is_finished(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    wish, out = Request(data=files[0], settings=QUICK), tmp_path / "model"
    fit(wish, out, Promise(coverage=0.5))
    first = sha256(out / "weights.safetensors")
    (out / "model.json").unlink()  # the weights were moved, the model not yet described
    fit(wish, out, Promise(coverage=0.5))
    assert sha256(out / "weights.safetensors") == first
    (out / "weights.safetensors").write_bytes((out / "weights.safetensors").read_bytes() + b"x")
    with pytest.raises(BadInput, match="changed after training"):
        fit(wish, out, Promise(coverage=0.5))
    (out / "weights.safetensors").unlink()
    with pytest.raises(BadInput, match="weights are gone"):
        fit(wish, out, Promise(coverage=0.5))
    assert json.loads((out / "model.json").read_text())["parts"]["weights.safetensors"] == first


def test_weights_that_version_0_1_left_in_the_run_are_taken_over(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    wish, out = Request(data=files[0], settings=QUICK), tmp_path / "model"
    fit(wish, out, Promise(coverage=0.5))
    first, log = sha256(out / "weights.safetensors"), sha256(out / "run/log.jsonl")
    (out / "weights.safetensors").rename(out / "run/model.safetensors")  # cut off while measuring
    (out / "model.json").unlink()
    (out / "run/measurements.jsonl").unlink()
    fit(wish, out, Promise(coverage=0.5))
    assert weights(out) == ["weights.safetensors"]
    assert (sha256(out / "weights.safetensors"), sha256(out / "run/log.jsonl")) == (first, log)
    load(out)
