"""The committed results are of the experiments as they are now, with no seed left out and nothing large."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from ova.experiments import EXPERIMENTS
from ova.training.recipe import from_json, load_all
from ova.training.run_folder import ALL_CURVES, MEASUREMENTS, RUNS, read_collection

RESULTS = Path(__file__).resolve().parents[1] / "results"
FOLDERS = sorted(path.parent for path in RESULTS.glob(f"*/{RUNS}"))
COMMITTED = [(folder.name, run) for folder in FOLDERS for run in read_collection(folder)]
each_run = pytest.mark.parametrize(
    ("experiment", "run"), COMMITTED, ids=[f"{name}/{run.id}" for name, run in COMMITTED]
)


@each_run
def test_a_result_is_of_a_complete_run_of_its_experiment_as_it_is_now(experiment, run):
    recipe = from_json(run.recipe, run.id)
    base = EXPERIMENTS[experiment].base(recipe.formulation)
    assert recipe == replace(base, seed=recipe.seed)
    assert run.id == recipe.id
    assert run.experiment == experiment
    assert run.log[-1]["epoch"] == recipe.epochs
    assert any(row["dataset"] == "test" for row in run.measurements)
    assert run.calibration
    assert bool(run.curves) == (run.seed == 0)


@each_run
def test_a_manifest_names_its_command_and_no_machine(experiment, run):
    words = run.manifest["command"].split()
    assert "run" in words
    assert not any(word.startswith(("/", "~")) for word in words)
    assert set(run.manifest["seconds"]) - {"scores"} == {"training", "prediction", "measurement"}


@each_run
def test_a_training_that_was_interrupted_says_so(experiment, run):
    """Before manifests told it, the seconds did: they are of the last process, the log's of all."""
    epochs = sum(row["seconds"] for row in run.log)
    assert run.manifest.get("resumed") or run.manifest["seconds"]["training"] >= epochs


def test_no_seed_is_left_out():
    seeds = defaultdict(list)
    for experiment, run in COMMITTED:
        seeds[experiment, run.recipe["formulation"]].append(run.seed)
    assert seeds
    for found in seeds.values():
        assert sorted(found) == list(range(len(found)))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_the_committed_runs_are_recipes_that_can_be_run_again(folder):
    ids = [recipe.id for recipe in load_all(folder / RUNS)]
    assert ids == [run.id for run in read_collection(folder)]


def test_there_are_few_files_and_none_that_nobody_reads():
    files = [path for path in RESULTS.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    assert len(files) <= 100
    below = [path for path in files if path.parent != RESULTS and path.suffix != ".png"]
    trial = {path.name for path in below if path.parent.name == "trial"}
    assert trial <= {f"{name}.jsonl" for name in ("digits-8", "digits-9", "clinc", "omniglot")}
    assert {path.name for path in below} - trial == {RUNS, MEASUREMENTS, ALL_CURVES}
