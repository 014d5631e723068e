"""An ensemble is the mean of its members' p: exactly, in any order, and measured as any run is."""

import json
import shutil
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lightning_fabric import Fabric
from typer.testing import CliRunner

from narrowing import there
from ova.cli.app import app
from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.files import read_lines, read_object, write_json
from ova.metrics import METRICS
from ova.predictions import Predictions, read, write
from ova.predictions.averaging import average
from ova.report import runs
from ova.scores import SCORES
from ova.training.engine import Machine
from ova.training.ensemble import ensemble
from ova.training.recipe import load
from ova.training.run_folder import predictions_path, read_collection, write_collection
from ova.training.stages import Place, carry_out

BASE = replace(EXPERIMENTS["digits"].base("softmax"), model="mlp", data="toy", epochs=1, steps=20)
FORMULATIONS = ("softmax", "ova")


def trained(place, **changed):
    recipe = replace(BASE, **changed)
    for _ in carry_out(Fabric(accelerator="cpu", devices=1), recipe, place, Machine()):
        pass
    return place.folder(recipe)


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("members"))
    return {f: [trained(place, formulation=f, seed=s) for s in range(3)] for f in FORMULATIONS}


def made(folders, out, events=None):
    """Carry out an ensemble, or only its first so many events."""
    happened = ensemble(folders, out)
    seen = list(islice(happened, events))
    happened.close()
    return [event.name for event in seen]


def answers(folder):
    """The bytes of all that a reader of the run looks at, but for the time that it took."""
    paths = sorted(p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.mark.slow
@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_answer_is_the_mean_of_p(members, formulation, tmp_path):
    made(members[formulation], tmp_path / "out")
    for name in ("test", "validation", "ood/ring"):
        parts = [read(predictions_path(m, name)) for m in members[formulation]]
        said = read(predictions_path(tmp_path / "out", name))
        mean = np.mean([there(p.probs).astype(np.float64) for p in parts], 0)
        assert np.array_equal(there(said.probs), mean.astype(np.float32))
        assert np.array_equal(said.confidence, mean.max(1))
        assert np.array_equal(said.prediction, mean.argmax(1))
        assert np.array_equal(said.target, parts[0].target)
        assert said.max_logit is None
        assert said.normalised == (formulation == "softmax")
    sums = mean.sum(1)
    assert np.allclose(sums, 1) == (formulation == "softmax")


def test_it_is_measured_as_any_run_is(members, tmp_path):
    out = tmp_path / "out"
    made(members["ova"], out)
    rows = read_lines(out / "measurements.jsonl")
    said = read(predictions_path(out, "test"))
    told = {r["metric"]: r["value"] for r in rows if r["dataset"] == "test"}
    assert told["accuracy"] == METRICS["accuracy"](said) == said.correct.mean()
    assert told["nll"] == pytest.approx(METRICS["nll"](said))
    theirs = read_lines(members["ova"][0] / "measurements.jsonl")
    missing = {(r["dataset"], r["metric"], r.get("score")) for r in theirs}
    missing -= {(r["dataset"], r["metric"], r.get("score")) for r in rows}
    of_one_network = {name for name, score in SCORES.items() if score.column is None}
    assert {score for _, _, score in missing} <= {"max_logit", "energy", *of_one_network}


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_order_of_the_members_changes_no_byte(members, formulation, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    made(members[formulation], one)
    made(members[formulation][::-1], other)
    assert answers(one) == answers(other)


@pytest.mark.parametrize("events", [1, 3, 5, 6])
def test_an_interrupted_one_ends_with_the_same_bytes(members, events, tmp_path):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    said = made(members["softmax"], whole)
    first = made(members["softmax"], broken, events)
    again = made(members["softmax"], broken)
    assert [*first[:-1], *again] == said  # what was complete was not done again
    assert answers(broken) == answers(whole)
    assert made(members["softmax"], broken) == ["complete"]


def test_a_mean_over_chunks_is_that_of_the_whole(monkeypatch, tmp_path):
    rng = np.random.default_rng(0)
    paths, y = [tmp_path / f"{k}.parquet" for k in range(4)], rng.integers(-1, 3, 50)
    drawn = [rng.uniform(0, 0.9, (50, 3)).astype(np.float32) for _ in paths]
    for path, p in zip(paths, drawn, strict=True):
        write(path, Predictions.from_probs(p, y, normalised=False, keep_probs=True))
    average(tmp_path / "whole.parquet", paths)
    monkeypatch.setattr("ova.predictions.parquet.CELLS", 21)  # seven rows at a time
    average(tmp_path / "chunks.parquet", paths)
    whole, chunks = read(tmp_path / "whole.parquet"), read(tmp_path / "chunks.parquet")
    for name in ("id", "target", "prediction", "confidence", "log_answers", "probs"):
        assert np.array_equal(getattr(whole, name), getattr(chunks, name), equal_nan=True), name


@pytest.mark.parametrize(
    ("other", "said"),
    [
        ({"target": [0, 1, 1]}, "ids and targets"),
        ({"id": [0, 1, 3]}, "ids and targets"),
        ({"normalised": False}, "normalised"),
        ({"target": [0, 1]}, "equally many rows|ids and targets"),
        ({"keep_probs": False}, "keeps no probabilities"),
    ],
)
def test_files_about_other_rows_are_refused(other, said, tmp_path):
    def kept(name, **changed):
        arguments: dict[str, Any] = {"target": [0, 1, 0], "normalised": True, "keep_probs": True}
        arguments |= changed
        y = arguments.pop("target")
        p = np.full((len(y), 2), 0.5)
        write(tmp_path / name, Predictions.from_probs(p, y, **arguments))
        return tmp_path / name

    with pytest.raises(BadInput, match=said):
        average(tmp_path / "out", [kept("one"), kept("other", **other)])
    assert not (tmp_path / "out").exists()


def test_members_are_runs_of_one_recipe(members, tmp_path):
    softmax, ova = members["softmax"], members["ova"]
    other = trained(Place(tmp_path), seed=7, lr=0.1)
    unfinished = shutil.copytree(softmax[0], tmp_path / "unfinished")
    (unfinished / "measurements.jsonl").unlink()
    moved = shutil.copytree(softmax[1], tmp_path / "moved")
    record = read_object(moved / "manifest.json")
    write_json(moved / "manifest.json", record | {"data": {"toy": "another"}})
    fewer = shutil.copytree(softmax[1], tmp_path / "fewer")
    predictions_path(fewer, "ood/ring").unlink()
    made(softmax, tmp_path / "out")
    refused = {
        "at least two": softmax[:1],
        r"differ in formulation \('softmax' and 'ova'\)": [softmax[0], ova[1]],
        r"differ in lr \(": [softmax[0], other],
        "both have seed 0": [softmax[0], softmax[0]],
        "no complete run": [unfinished, softmax[1]],
        "different data": [softmax[0], moved],
        "ood/ring is missing in one": [softmax[0], fewer],
        "ensemble itself": [tmp_path / "out", softmax[0]],
    }
    for said, folders in refused.items():
        with pytest.raises(BadInput, match=said):
            made(folders, tmp_path / "never")
    assert not (tmp_path / "never").exists()


def test_a_folder_of_something_else_is_left_alone(members, tmp_path):
    out = tmp_path / "out"
    made(members["softmax"][:2], out)
    before = answers(out)
    with pytest.raises(BadInput, match="left untouched"):
        made(members["softmax"], out)
    assert answers(out) == before


def test_shifted_sets_without_probabilities_are_left_out_together(members, tmp_path):
    folders = [shutil.copytree(m, tmp_path / m.name) for m in members["ova"]]
    for level in (1, 2):
        for folder in folders:
            shutil.copy(
                predictions_path(folder, "test"), predictions_path(folder, "test").with_name("x")
            )
            path = predictions_path(folder, f"shift/noise/{level}")
            path.parent.mkdir(parents=True, exist_ok=True)
            p = read(predictions_path(folder, "test"))
            write(path, replace(p, probs=None) if (level, folder) == (2, folders[1]) else p)
    happened = CliRunner().invoke(app, ["ensemble", *map(str, folders), "-o", str(tmp_path / "o")])
    assert happened.exit_code == 0, happened.output
    assert "shifted sets are left out" in happened.output
    assert "ova x 3" in happened.output
    assert read_object(tmp_path / "o" / "recipe.json")["shift"] == "none"
    assert not (tmp_path / "o" / "predictions" / "shift").exists()
    path = predictions_path(folders[0], "ood/ring")
    write(path, replace(read(path), probs=None))
    with pytest.raises(BadInput, match=r"keeps no probabilities of ood/ring.*at most 20,000,000"):
        made(folders, tmp_path / "never")


def test_a_report_has_a_line_for_it(members, tmp_path):
    home = tmp_path / "digits"
    for folder in members["softmax"]:
        shutil.copytree(folder, home / folder.name)
    made(members["softmax"], home / "softmax-x3")
    made(members["softmax"][1:], home / "softmax-x2")
    found = runs.read([home])
    assert runs.labels(found) == ["softmax", "softmax x 2", "softmax x 3"]
    write_collection(tmp_path / "kept", found)
    again = read_collection(tmp_path / "kept")
    assert {run.label for run in again} == {run.label for run in found}


def test_its_recipe_says_what_it_is_and_cannot_be_run(members, tmp_path):
    made(members["softmax"], tmp_path / "out")
    recipe = json.loads((tmp_path / "out" / "recipe.json").read_text())
    assert list(recipe["runs"]) == [m.name for m in members["softmax"]]
    with pytest.raises(BadInput, match=f"ova ensemble.*{Path(members['softmax'][2]).name}"):
        load(tmp_path / "out" / "recipe.json")
