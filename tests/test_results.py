"""The committed results are of the experiments as they are now, with no seed left out and nothing large."""

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.training.recipe import load

RESULTS = Path(__file__).resolve().parents[1] / "results"
RUNS = sorted(path.parent for path in RESULTS.glob("*/*/recipe.json"))
KEPT = {"recipe.json", "measurements.jsonl", "manifest.json", "log.jsonl"}
OPTIONAL = {"curves.json", "calibration.json"}


@pytest.mark.parametrize("folder", RUNS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_result_is_of_a_complete_run_of_its_experiment_as_it_is_now(folder):
    recipe = load(folder / "recipe.json")
    base = EXPERIMENTS[folder.parent.name].base(recipe.formulation)
    assert recipe == replace(base, seed=recipe.seed)
    assert folder.name == recipe.id
    names = {path.name for path in folder.iterdir()}
    assert names >= KEPT
    assert names <= KEPT | OPTIONAL
    last = read_lines(folder / "log.jsonl")[-1]["epoch"]
    assert last == recipe.epochs
    assert any(row["dataset"] == "test" for row in read_lines(folder / "measurements.jsonl"))


@pytest.mark.parametrize("folder", RUNS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_manifest_names_its_command_and_no_machine(folder):
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    words = manifest["command"].split()
    assert "run" in words
    assert not any(word.startswith(("/", "~")) for word in words)
    assert set(manifest["seconds"]) == {"training", "prediction", "measurement"}


@pytest.mark.parametrize("folder", RUNS, ids=lambda f: f"{f.parent.name}/{f.name}")
def test_a_training_that_was_interrupted_says_so(folder):
    """Before manifests told it, the seconds did: they are of the last process, the log's of all."""
    manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    epochs = sum(row["seconds"] for row in read_lines(folder / "log.jsonl"))
    assert manifest.get("resumed") or manifest["seconds"]["training"] >= epochs


def test_no_seed_is_left_out():
    seeds = defaultdict(list)
    for folder in RUNS:
        recipe = load(folder / "recipe.json")
        seeds[folder.parent.name, recipe.formulation].append(recipe.seed)
    assert seeds
    for found in seeds.values():
        assert sorted(found) == list(range(len(found)))
