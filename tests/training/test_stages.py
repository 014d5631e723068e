"""Runs: every stage leaves a file, a killed run ends with the bytes of an undisturbed one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import replace
from itertools import islice

import pytest
import torch
from lightning_fabric import Fabric

from ova.cli.run import run_all
from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.metrics import METRICS
from ova.metrics.evaluate import CALIBRATED
from ova.nn.formulations import FORMULATIONS
from ova.posthoc.calibration import from_json as calibration_from
from ova.predictions import read, write
from ova.training.engine import Machine
from ova.training.stages import Place, Stage, carry_out, chosen, load_task

SMALL = replace(EXPERIMENTS["toy"].recipes[0], epochs=3, steps=200)


def run(recipe, out, events=None):
    """Carry out a recipe, or only its first so many events; gives its folder."""
    place = Place(out)
    happened = carry_out(Fabric(accelerator="cpu", devices=1), recipe, place, Machine())
    for _ in islice(happened, events):
        pass
    assert isinstance(happened, Generator)
    happened.close()
    return place.folder(recipe)


def results(folder):
    names = ("measurements.jsonl", "curves.json", "calibration.json")
    return [(folder / name).read_bytes() for name in names]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return run(replace(SMALL, formulation="ova-dm"), tmp_path_factory.mktemp("undisturbed"))


@pytest.mark.slow
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_every_formulation_runs_and_leaves_its_files(formulation, tmp_path):
    folder = run(replace(SMALL, formulation=formulation), tmp_path)
    for name in ("recipe.json", "model.safetensors", "log.jsonl", "curves.json", "manifest.json"):
        assert (folder / name).exists(), name
    rows = read_lines(folder / "measurements.jsonl")
    assert all({"dataset", "metric", "value"} <= row.keys() for row in rows)
    assert {"test", "train", "ood/ring", "ood/centre"} <= {row["dataset"] for row in rows}
    assert (folder / "predictions" / "ood" / "ring.parquet").exists()
    assert not list(folder.rglob("*.part"))


def test_what_chooses_is_predicted_and_not_measured(tmp_path):
    recipe = replace(EXPERIMENTS["digits"].base("ova"), data="digits-8", epochs=1, shift="none")
    folder = run(recipe, tmp_path)
    held = read(folder / "predictions" / "validation" / "9.parquet")
    assert len(held) == 180
    assert (held.target == -1).all()
    sets = {row["dataset"] for row in read_lines(folder / "measurements.jsonl")}
    assert "ood/8" in sets
    assert not any("9" in name for name in sets)


@pytest.mark.slow
def test_two_runs_of_one_recipe_give_the_same_bytes(undisturbed, tmp_path):
    assert results(run(replace(SMALL, formulation="ova-dm"), tmp_path)) == results(undisturbed)


@pytest.mark.slow
@pytest.mark.parametrize("events", [1, 40, 81, 82, 150, 203, 204, 206])
def test_a_run_that_stops_anywhere_ends_with_the_same_bytes(events, undisturbed, tmp_path):
    recipe = replace(SMALL, formulation="ova-dm")
    folder = run(recipe, tmp_path, events)
    assert not (folder / "measurements.jsonl").exists()
    assert results(run(recipe, tmp_path)) == results(undisturbed)
    epochs = [row["epoch"] for row in read_lines(folder / "log.jsonl")]
    assert epochs == [1, 2, 3]


@pytest.mark.slow
@pytest.mark.parametrize("keep", ["last", "best"])
@pytest.mark.parametrize("ema", [0.0, 0.9])
def test_averages_best_weights_and_a_faster_head_resume_exactly_too(keep, ema, tmp_path):
    recipe = replace(SMALL, keep=keep, ema=ema, optimiser="adam", lr=1e-2, head_lr=3)
    run(recipe, tmp_path / "cut", 100)
    assert results(run(recipe, tmp_path / "cut")) == results(run(recipe, tmp_path / "whole"))


def test_a_complete_run_is_not_run_again(undisturbed):
    place = Place(undisturbed.parents[1])
    recipe = replace(SMALL, formulation="ova-dm")
    before = {p: p.stat().st_mtime_ns for p in undisturbed.rglob("*") if p.is_file()}
    fabric = Fabric(accelerator="cpu", devices=1)
    assert list(carry_out(fabric, recipe, place, Machine())) == [Stage("complete")]
    assert {p: p.stat().st_mtime_ns for p in undisturbed.rglob("*") if p.is_file()} == before


@pytest.mark.slow
def test_gradients_in_pieces_are_the_gradients_of_the_whole(tmp_path):
    whole = run(SMALL, tmp_path / "whole")
    place = Place(tmp_path / "pieces")
    fabric = Fabric(accelerator="cpu", devices=1)
    for _ in carry_out(fabric, SMALL, place, Machine(device_batch=50)):
        pass
    one, other = (read_lines(f / "log.jsonl") for f in (whole, place.folder(SMALL)))
    assert [r["loss"] for r in one] == pytest.approx([r["loss"] for r in other], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    ["recipe.json", "checkpoint.safetensors", "model.safetensors", "predictions/test.parquet"],
)
def test_a_damaged_file_is_named_and_left_untouched(name, tmp_path):
    folder = run(SMALL, tmp_path)
    (folder / "measurements.jsonl").unlink()
    if name == "checkpoint.safetensors":
        (folder / "model.safetensors").unlink()
    (folder / name).write_bytes(b"half of something")
    with pytest.raises(BadInput, match=name.replace(".", r"\.")):
        run(SMALL, tmp_path)
    assert (folder / name).read_bytes() == b"half of something"


@pytest.mark.slow
@pytest.mark.parametrize("kept", [0, 1, -1])
def test_measurements_that_are_cut_are_not_complete(kept, tmp_path):
    folder = run(SMALL, tmp_path)
    path = folder / "measurements.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:kept]))
    with pytest.raises(BadInput, match=r"measurements\.jsonl is damaged, it has \d+ of at least"):
        run(SMALL, tmp_path)
    path.unlink()
    run(SMALL, tmp_path)
    assert path.read_text() == "".join(lines)


def test_a_run_that_was_killed_before_its_last_manifest_is_finished(tmp_path):
    folder = run(SMALL, tmp_path)
    told = json.loads((folder / "manifest.json").read_text())
    assert told["rows"] == len(read_lines(folder / "measurements.jsonl"))
    began = {k: v for k, v in told.items() if k != "rows"} | {"seconds": {}}
    (folder / "manifest.json").write_text(json.dumps(began))
    run(SMALL, tmp_path)
    assert json.loads((folder / "manifest.json").read_text())["rows"] == told["rows"]


def test_the_checkpoint_of_another_recipe_is_refused(tmp_path):
    other = replace(SMALL, lr=0.02)
    first, second = run(SMALL, tmp_path, 100), tmp_path / "toy" / other.id
    second.mkdir()
    (second / "checkpoint.safetensors").write_bytes((first / "checkpoint.safetensors").read_bytes())
    with pytest.raises(BadInput, match="not written by this recipe"):
        run(other, tmp_path)


def test_a_foreign_file_is_named_and_left(tmp_path, capsys):
    folder = tmp_path / "toy" / SMALL.id
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("mine")
    assert run_all([SMALL], Place(tmp_path), Machine(accelerator="cpu")) == 0
    assert "notes.txt" in capsys.readouterr().out.replace("\n", "")
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_failing_recipe_does_not_take_the_others_down(tmp_path, capsys):
    bad = replace(SMALL, lr=1e3, steps=20, formulation="dm-isomax", clip=0)
    blocked = tmp_path / "toy" / bad.id
    blocked.mkdir(parents=True)
    (blocked / "predictions").write_text("a file where a folder belongs")
    assert run_all([bad, SMALL], Place(tmp_path), Machine(accelerator="cpu")) == 1
    assert (tmp_path / "toy" / SMALL.id / "measurements.jsonl").exists()
    assert bad.id in capsys.readouterr().out


def test_one_process_at_a_time_works_in_a_folder(tmp_path):
    first = carry_out(Fabric(accelerator="cpu", devices=1), SMALL, Place(tmp_path), Machine())
    next(first)
    with pytest.raises(BadInput, match="another process"):
        run(SMALL, tmp_path)
    assert isinstance(first, Generator)
    first.close()


def test_the_shift_setting_selects_types():
    task, digits = load_task("digits", None), EXPERIMENTS["digits"].recipes[0]
    assert "shift/noise/5" in chosen(task, digits)
    assert not [n for n in chosen(task, replace(digits, shift="none")) if n.startswith("shift/")]
    assert "shift/noise/5" in chosen(task, replace(digits, shift="noise"))
    with pytest.raises(BadInput, match="did you mean 'noise'"):
        chosen(task, replace(digits, shift="nois"))


def command(out, *more, experiment="toy"):
    return [sys.executable, "-m", "ova", "run", experiment, "--only", "ova-dm", "--seeds", "1",
            "--set", "epochs=6", "--set", "steps=0", "--out", str(out), *more]  # fmt: skip


def only_folder(out):
    (folder,) = out.glob("*/*")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("experiment", ["toy", "digits"])
def test_kill_minus_nine_at_any_moment_changes_nothing(experiment, tmp_path):
    cut, whole = (command(tmp_path / name, experiment=experiment) for name in ("cut", "whole"))
    subprocess.run(whole, check=True, capture_output=True)
    for kill in range(4):
        process = subprocess.Popen(cut, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not list((tmp_path / "cut").rglob("checkpoint.safetensors")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.15 * kill)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run(cut, check=True, capture_output=True)
    assert results(only_folder(tmp_path / "cut")) == results(only_folder(tmp_path / "whole"))


@pytest.mark.slow
def test_two_processes_give_the_measurements_of_one(tmp_path):
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    for devices in ("1", "2"):
        more = ["--devices", devices, "--accelerator", "cpu"]
        subprocess.run(command(tmp_path / devices, *more), check=True, env=env, capture_output=True)
    one, two = (read_lines(only_folder(tmp_path / d) / "measurements.jsonl") for d in ("1", "2"))
    assert [(r["dataset"], r["metric"]) for r in one] == [(r["dataset"], r["metric"]) for r in two]
    for first, second in zip(one, two, strict=True):
        assert first["value"] == pytest.approx(second["value"], abs=1e-4), first


@pytest.mark.parametrize(
    ("formulation", "method"), [("softmax", "temperature"), ("dm", "temperature"), ("ova", "top")]
)
def test_raw_and_calibrated_values_stand_side_by_side(formulation, method, tmp_path, capsys):
    recipe = replace(EXPERIMENTS["digits"].recipes[0], formulation=formulation, epochs=2)
    folder = run(recipe, tmp_path)
    rows = read_lines(folder / "measurements.jsonl")
    fitted = calibration_from(json.loads((folder / "calibration.json").read_text()))
    assert fitted.method == method
    after = [row for row in rows if "calibration" in row]
    assert {row["calibration"] for row in after} == {method}
    sets = {s for r in rows if (s := r["dataset"]) == "test" or s.startswith("shift")}
    assert {(r["dataset"], r["metric"]) for r in after} == {
        (s, m) for s in sets for m in CALIBRATED
    }
    said = read(folder / "predictions" / "shift" / "noise" / "5.parquet")
    ece = {"calibration" in r: r["value"] for r in rows
           if (r["dataset"], r["metric"]) == ("shift/noise/5", "ece")}  # fmt: skip
    assert ece[True] == METRICS["ece"](fitted.apply(said))
    assert ece[False] == METRICS["ece"](said)
    before = next(r for r in rows if (r["dataset"], r["metric"]) == ("test", "ece"))
    run_all([recipe], Place(tmp_path), Machine(accelerator="cpu"))
    assert f"{before['value']:.4f}" in capsys.readouterr().out  # the summary is of the raw values


def test_a_validation_set_without_errors_gives_no_calibration_and_says_why(tmp_path):
    folder = run(SMALL, tmp_path)
    validation = folder / "predictions" / "validation.parquet"
    said = read(validation)
    write(validation, replace(said, target=said.prediction))
    (folder / "measurements.jsonl").unlink()
    run(SMALL, tmp_path)
    stored = json.loads((folder / "calibration.json").read_text())
    assert "held-out answers are right" in stored["why_not"]
    assert not [r for r in read_lines(folder / "measurements.jsonl") if "calibration" in r]


def test_the_manifest_traces_the_run(undisturbed):
    manifest = json.loads((undisturbed / "manifest.json").read_text())
    assert {"ova", "versions", "command", "seed", "data", "started", "seconds", "host"} <= set(
        manifest
    )
    assert {"training", "prediction", "measurement"} <= set(manifest["seconds"])
    assert manifest["host"]["threads"] == torch.get_num_threads()
    assert manifest["resumed"] == []


def test_the_manifest_tells_every_time_that_the_run_was_taken_up_again(tmp_path):
    for events in (40, 100, 126, None):  # stopped in epoch 1, in epoch 2, and while it predicts
        folder = run(SMALL, tmp_path, events)
    manifest = json.loads((folder / "manifest.json").read_text())
    told = [(entry["stage"], entry.get("epoch")) for entry in manifest["resumed"]]
    assert told == [("training", 0), ("training", 1), ("prediction", None)]
    for entry in manifest["resumed"]:
        assert {"ova", "versions", "command", "started", "host"} <= set(entry)


def test_the_manifest_of_an_older_run_is_continued(tmp_path):
    path = run(SMALL, tmp_path, 100) / "manifest.json"
    older = {k: v for k, v in json.loads(path.read_text()).items() if k != "resumed"}
    path.write_text(json.dumps(older))
    run(SMALL, tmp_path)
    assert [entry["epoch"] for entry in json.loads(path.read_text())["resumed"]] == [1]


def test_measuring_reads_each_file_of_predictions_once(tmp_path, monkeypatch):
    opened: list[str] = []

    def counted(path, *args, **more):
        opened.append(str(path.relative_to(path.parents[-1])).partition("predictions/")[2])
        return read(path, *args, **more)

    monkeypatch.setattr("ova.training.stages.read", counted)
    base = EXPERIMENTS["digits"].recipes[0]
    folder = run(replace(base, epochs=1, steps=2), tmp_path)
    written = [p.relative_to(folder / "predictions") for p in folder.rglob("*.parquet")]
    assert sorted(opened) == sorted(map(str, written))
    assert len(opened) > 5
