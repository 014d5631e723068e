"""The search: what is tried follows from numbers alone, and no death of a worker changes the result."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import asdict, fields, replace
from itertools import islice
from math import log

import optuna
import pytest
from lightning_fabric import Fabric
from optuna.exceptions import StorageInternalError

from narrowing import there
from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.training import search as tuning
from ova.training.engine import Machine
from ova.training.loop import Diverged, fit
from ova.training.recipe import Experiment, Range, Recipe, load
from ova.training.search import Search, choose, open_study, searches, tune, write_history

BASE = replace(EXPERIMENTS["toy"].recipes[0], experiment="small", epochs=2, steps=0)
SMALL = Experiment(
    "small",
    "a search of seconds",
    (BASE, replace(BASE, formulation="ova")),
    search={"lr": Range(1e-3, 1e-1, log=True), "momentum": Range(0.5, 0.95)},
    trials=3,
)
SEARCH = Search(SMALL, "softmax", 3)

# Ranges and trials as the paper prints them; its L2 factor c stands for the penalty c |w|².
PAPER = {
    "cifar10": (100, {"lr": (1e-3, 1), "momentum": (0.85, 0.99), "eps": (1e-8, 1e-5)}),
    "cifar100": (50, {"lr": (1e-4, 1e-1), "weight_decay": (2 * 1e-5, 2 * 1e-3)}),
    "imagenet": (50, {"lr": (0.5, 10), "weight_decay": (2 * 1e-5, 2 * 1e-3)}),
    "clinc": (30, {"lr": (1e-5, 1e-3)}),
}


def work(out, search=SEARCH, events=None, **more):
    """Work on a search, or only for so many events; gives its events."""
    fabric = Fabric(accelerator="cpu", devices=1)
    happening = tune(fabric, replace(search, out=out, **more), Machine())
    seen = list(islice(happening, events))
    assert isinstance(happening, Generator)
    happening.close()
    return seen


def test_a_trial_is_one_network():
    with pytest.raises(BadInput, match="leave members out"):
        searches(SMALL, settings=["members=2"])


def rows(out, search=SEARCH):
    return write_history([replace(search, out=out)])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed")
    work(out)
    return out


@pytest.mark.parametrize("name", PAPER)
def test_the_search_is_the_papers(name):
    experiment, (trials, ranges) = EXPERIMENTS[name], PAPER[name]
    assert experiment.trials == trials
    assert {n: (r.low, r.high) for n, r in experiment.search.items()} == ranges


@pytest.mark.parametrize("name", [n for n, e in EXPERIMENTS.items() if e.search])
def test_every_search_tries_only_recipes_that_can_be(name):
    experiment = EXPERIMENTS[name]
    assert experiment.trials > 0
    assert set(experiment.search) <= {each.name for each in fields(Recipe)}
    for search in searches(experiment):
        for number in range(search.trials):
            search.recipe(number)  # a Recipe refuses what is out of its range


@pytest.mark.parametrize("where", [Range(1e-5, 1e-3), Range(1e-5, 1e-3, log=True)])
def test_trials_fill_the_range_evenly(where):
    search = Search(replace(SMALL, search={"lr": where}), "ova", 1000)
    scale = log if where.log else float
    low, high = scale(where.low), scale(where.high)
    shares = [(scale(search.values(k)["lr"]) - low) / (high - low) for k in range(1000)]
    assert all(0 <= s <= 1 for s in shares)
    counts = [sum(i <= 10 * s < i + 1 for s in shares) for i in range(10)]
    assert sum((c - 100) ** 2 / 100 for c in counts) < 27.9  # chi², 9 degrees: p = 0.001


def test_what_a_trial_tries_depends_on_seed_formulation_and_number_only():
    tried = [
        Search(SMALL, f, n, s).values(2) for f in ("softmax", "ova") for s in (0, 1) for n in (3, 9)
    ]
    assert tried[0] == tried[1] == SEARCH.values(2)
    assert len({json.dumps(each) for each in tried}) == 4
    assert len({SEARCH.values(k)["lr"] for k in range(50)}) == 50


def test_the_best_trial_by_validation_loss_becomes_a_recipe(undisturbed):
    search, found = replace(SEARCH, out=undisturbed), rows(undisturbed)
    assert [(r["trial"], r["state"]) for r in found] == [(k, "complete") for k in range(3)]
    for row in found:
        logged = read_lines(search.folder(row["trial"]) / "log.jsonl")
        assert row["value"] == logged[-1]["validation_loss"]
    best = there(choose(search))
    assert best == min(found, key=lambda row: row["value"])
    assert load(undisturbed / "small" / "softmax.json") == SEARCH.recipe(best["trial"])
    assert not list(undisturbed.rglob("*.safetensors"))  # a hundred trials do not fill the disk


def test_a_complete_search_is_not_worked_on_again(undisturbed):
    assert work(undisturbed) == []


def test_more_trials_go_on_from_those_that_are_there(undisturbed, tmp_path):
    work(tmp_path)
    work(tmp_path, replace(SEARCH, trials=4))
    assert rows(tmp_path, replace(SEARCH, trials=4))[:3] == rows(undisturbed)


@pytest.mark.parametrize(
    "events", [100, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 50, 200, 330))]
)
def test_a_search_that_stops_anywhere_ends_with_the_same_history(events, undisturbed, tmp_path):
    whole = 3 * (1 + 2 * 80)  # per trial: its start, and per epoch 79 steps and the row of the log
    assert len(work(tmp_path, events=events)) == events
    assert len(work(tmp_path)) <= whole - events + 81  # it lost no more than the epoch under way
    assert rows(tmp_path) == rows(undisturbed)


def test_no_recipe_is_chosen_before_all_trials_are_done(tmp_path):
    work(tmp_path, events=200)
    assert choose(replace(SEARCH, out=tmp_path)) is None
    assert not (tmp_path / "small").exists()


def test_a_trial_that_diverges_counts_and_is_not_chosen(tmp_path, monkeypatch):
    def explode(fabric, task, recipe, folder, machine):
        if recipe == SEARCH.recipe(1):
            raise Diverged("the loss is nan in epoch 1")
        yield from fit(fabric, task, recipe, folder, machine)

    monkeypatch.setattr(tuning, "fit", explode)
    work(tmp_path)
    assert [r["state"] for r in rows(tmp_path)] == ["complete", "diverged", "complete"]
    assert rows(tmp_path)[1]["value"] is None
    assert there(choose(replace(SEARCH, out=tmp_path)))["trial"] != 1
    assert work(tmp_path) == []


def test_a_full_disk_stops_the_search_and_the_next_goes_on(undisturbed, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("ova.training.checkpoint.save", full)
        with pytest.raises(OSError, match="No space"):
            work(tmp_path)
    work(tmp_path)
    assert rows(tmp_path) == rows(undisturbed)


def test_weights_and_locks_of_a_worker_that_was_killed_at_the_end_are_removed(tmp_path):
    work(tmp_path)
    folder = replace(SEARCH, out=tmp_path).folder(1)
    for name in ("model.safetensors", ".lock"):
        (folder / name).touch()
    assert work(tmp_path) == []
    assert sorted(path.name for path in folder.iterdir()) == ["log.jsonl", "recipe.json"]


def test_books_that_cannot_be_kept_are_a_sentence(tmp_path, monkeypatch):
    def full(*_, **__):
        raise StorageInternalError("during the commit") from OSError("disk is full")

    monkeypatch.setattr(tuning, "take", full)
    with pytest.raises(BadInput, match=r"cannot be written down \(disk is full\); make room"):
        work(tmp_path)
    monkeypatch.setattr(tuning, "open_study", full)
    with pytest.raises(BadInput, match="small-tune: the trials cannot be written down"):
        rows(tmp_path)


def running(out, **told):
    """A trial that some worker has in hand, with what that worker told about itself."""
    study = open_study(replace(SEARCH, out=out))
    study.enqueue_trial(SEARCH.values(0), user_attrs={"number": 0})
    trial = study.ask()
    for name, value in told.items():
        trial.set_user_attr(name, value)
    return trial


def test_a_worker_elsewhere_that_lives_keeps_its_trial(tmp_path):
    running(tmp_path, host="elsewhere", folder="/nowhere", beat=time.time())
    work(tmp_path)
    assert [r["state"] for r in rows(tmp_path)] == ["running", "complete", "complete"]
    assert choose(replace(SEARCH, out=tmp_path)) is None


def test_a_worker_elsewhere_without_a_sign_of_life_loses_its_trial(undisturbed, tmp_path):
    late = running(tmp_path, host="elsewhere", beat=time.time() - 2 * tuning.GRACE)
    work(tmp_path)
    assert rows(tmp_path) == rows(undisturbed)
    # Should that worker wake up, what it brings is too late and harmless.
    open_study(replace(SEARCH, out=tmp_path)).tell(late.number, 0.0, skip_if_finished=True)
    assert rows(tmp_path) == rows(undisturbed)


def test_a_worker_that_was_killed_before_it_said_where_it_works_loses_its_trial_at_once(
    undisturbed, tmp_path, monkeypatch
):
    monkeypatch.setattr(tuning, "CLAIM", 0.5)
    running(tmp_path)
    work(tmp_path)
    assert rows(tmp_path) == rows(undisturbed)
    assert choose(replace(SEARCH, out=tmp_path)) is not None


def test_a_number_that_two_workers_queued_is_tried_once(undisturbed, tmp_path):
    study = open_study(replace(SEARCH, out=tmp_path))
    for number in (0, 1, 0, 2, 1):
        study.enqueue_trial(SEARCH.values(number), user_attrs={"number": number})
    assert len(work(tmp_path)) == 3 * 161
    assert rows(tmp_path) == rows(undisturbed)


def test_trials_are_given_up_only_when_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(optuna.trial.Trial, "should_prune", lambda trial: trial.number == 1)
    work(tmp_path / "off")
    assert [r["state"] for r in rows(tmp_path / "off")] == ["complete"] * 3
    work(tmp_path / "on", prune=True)
    assert [r["state"] for r in rows(tmp_path / "on")] == ["complete", "pruned", "complete"]


def test_a_journal_file_is_a_storage_too(undisturbed, tmp_path):
    storage = str(tmp_path / "journal.log")
    work(tmp_path, events=200, storage=storage)
    work(tmp_path, storage=storage)
    assert write_history([replace(SEARCH, out=tmp_path, storage=storage)]) == rows(undisturbed)


@pytest.mark.parametrize("url", ["nonsense://host/db", "sqlite:////no/such/folder/optuna.db"])
def test_a_storage_that_cannot_be_opened_is_the_users_to_mend(url, tmp_path):
    with pytest.raises(BadInput, match="--storage"):
        work(tmp_path, storage=url)


@pytest.mark.parametrize(
    ("experiment", "settings", "message"),
    [
        (replace(SMALL, search={}), [], "no ranges"),
        (SMALL, ["lr=0.1"], "both set and searched"),
        (SMALL, ["epochs=0"], "epochs = 0"),
        (SMALL, ["epoch=1"], "did you mean 'epochs'"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(experiment, settings, message):
    with pytest.raises(BadInput, match=message):
        searches(experiment, settings=settings)


SCRIPT = """
import sys
from pathlib import Path
from ova.cli.tune import search_all
from ova.training.engine import Machine
from ova.training.recipe import Experiment, Range, from_json
from ova.training.search import Search
import json
recipe = from_json(json.loads(sys.argv[2]), Path("argument"))
search = {"lr": Range(1e-3, 1e-1, log=True), "momentum": Range(0.5, 0.95)}
experiment = Experiment("small", "", (recipe,), search=search, trials=3)
found = [Search(experiment, "softmax", 3, out=Path(sys.argv[1]))]
search_all(found, Machine(accelerator="cpu"))
"""


def worker(out):
    command = [sys.executable, "-c", SCRIPT, str(out), json.dumps(asdict(BASE))]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=env, text=True)


@pytest.mark.slow
def test_kill_minus_nine_loses_no_trial(undisturbed, tmp_path):
    for kill in range(2):
        process, deadline = worker(tmp_path), time.monotonic() + 120
        while not list(tmp_path.rglob("checkpoint.safetensors")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.1 * kill)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    said, _ = worker(tmp_path).communicate(timeout=240)
    assert rows(tmp_path) == rows(undisturbed)
    assert (tmp_path / "small" / "softmax.json").exists()
    assert "3 complete" in said


@pytest.mark.slow
def test_two_workers_share_the_trials(undisturbed, tmp_path):
    workers = [worker(tmp_path), worker(tmp_path)]
    for each in workers:
        each.communicate(timeout=240)
        assert each.returncode == 0
    assert rows(tmp_path) == rows(undisturbed)
    assert load(tmp_path / "small" / "softmax.json")
