"""What a run left is read back as it was written, from its own folder and from a collection of many."""

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

import made_runs
from ova.cli import app as cli
from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.report import runs as report_runs
from ova.training.run_folder import (
    ALL_CURVES,
    CALIBRATION,
    CURVES,
    MEASUREMENTS,
    RUNS,
    Run,
    complete,
    is_collection,
    is_run,
    read,
    read_collection,
    write_collection,
    write_measurements,
)

SEPARATOR = "a\u2028b\u0085c"  # characters at which splitlines() would cut a line of JSON
COLLECT = Path(__file__).resolve().parents[2] / "results" / "collect.py"


@pytest.fixture(scope="module")
def experiment(tmp_path_factory) -> Path:
    """Run folders of two formulations, searched for, with two seeds each, and one calibrated."""
    root = tmp_path_factory.mktemp("runs")
    folder = made_runs.make(root, "digits", names=("softmax", "ova"), seeds=2, n=100)
    (folders(folder)[0] / CALIBRATION).write_text('{"method": "top", "a": 1.5, "b": 0.25}')
    return folder


def folders(experiment: Path) -> list[Path]:
    """The run folders of an experiment, by name."""
    return sorted(path for path in experiment.iterdir() if path.is_dir())


@pytest.fixture
def collection(experiment: Path, tmp_path: Path) -> Path:
    """The same runs, kept together."""
    write_collection(tmp_path / "digits", [read(folder) for folder in folders(experiment)])
    return tmp_path / "digits"


def test_a_collection_gives_back_the_runs_that_were_written(experiment, collection):
    alone = [read(folder) for folder in folders(experiment)]
    assert len(alone) == 4
    assert any(run.calibration for run in alone)
    assert all(run.measurements and run.curves and run.log and run.trials for run in alone)
    assert read_collection(collection) == alone
    assert sorted(path.name for path in collection.iterdir()) == sorted(
        (RUNS, MEASUREMENTS, ALL_CURVES)
    )


def test_the_report_reads_both_kinds_of_folder_alike(experiment, collection):
    assert report_runs.read([collection]) == report_runs.read([experiment])
    assert report_runs.read([collection.parent]) == report_runs.read([experiment])
    assert is_collection(collection)
    assert not is_run(collection)
    assert is_run(folders(experiment)[0])


def test_a_copied_collection_keeps_the_name_of_its_experiment(collection):
    moved = collection.rename(collection.with_name("yesterday"))
    assert {run.experiment for run in read_collection(moved)} == {"digits"}


EMPTY: dict[str, Any] = {"recipe": {}, "manifest": {}, "calibration": {}, "log": []}


@pytest.mark.parametrize("name", [RUNS, MEASUREMENTS, ALL_CURVES])
def test_a_damaged_line_is_named(collection, name):
    path = collection / name
    lines = path.read_text().split("\n")
    path.write_text("\n".join([lines[0], lines[1][:-1], *lines[2:]]))
    with pytest.raises(BadInput, match=rf"{name}, line 2 is damaged"):
        read_collection(collection)


@pytest.mark.parametrize(
    ("name", "line", "complaint"),
    [
        (RUNS, {"run": "x"}, "line 5 should be a JSON object with run, recipe"),
        (RUNS, {"run": "x", **EMPTY, "recipe": []}, "recipe"),
        (RUNS, {"run": "x", **EMPTY, "log": {}}, "log"),
        (RUNS, {"run": "x", **EMPTY, "log": [1]}, "log, row 1 should be a JSON object with epoch"),
        (RUNS, {"run": "x", **EMPTY, "log": [{"epoch": [[]]}]}, "epoch should be one value"),
        (RUNS, {"run": "x", **EMPTY, "log": [{"epoch": "a"}]}, "epoch should be a whole number"),
        (RUNS, {"run": "x", **EMPTY, "trials": {}}, "trials should be a JSON list"),
        (RUNS, {"run": "x", **EMPTY, "trials": [{"trial": 0}]}, "trials, row 1 should"),
        (MEASUREMENTS, {"run": "x", "dataset": "d", "metric": "m", "value": 1}, "no run 'x'"),
        (MEASUREMENTS, {"dataset": "d", "metric": "m", "value": 1}, "no run 'None'"),
        (MEASUREMENTS, {"run": "x", "dataset": "d", "metric": "m", "value": "high"}, "a number"),
        (ALL_CURVES, {"run": "x", "dataset": "d", "curve": "c", "columns": {}}, "no run 'x'"),
        (ALL_CURVES, {"run": "x", "dataset": "d", "curve": "c", "columns": [1]}, "columns"),
        (ALL_CURVES, {"run": "x", "dataset": "d"}, "columns"),
        (
            ALL_CURVES,
            {"run": "x", "dataset": "d", "curve": "c", "columns": {"x": [1], "y": [1, 2]}},
            "different lengths",
        ),
    ],
)
def test_a_line_that_does_not_belong_is_named(collection, name, line, complaint):
    with (collection / name).open("a") as file:
        file.write(json.dumps(line) + "\n")
    with pytest.raises(BadInput, match=f"{name}.*{complaint}"):
        read_collection(collection)


def test_two_runs_of_one_name_are_refused(collection):
    path = collection / RUNS
    path.write_text(path.read_text() + path.read_text().split("\n")[0] + "\n")
    with pytest.raises(BadInput, match=f"{RUNS}, row 5: .* a name of its own"):
        read_collection(collection)


def test_names_with_unusual_line_separators_survive_in_both_kinds(tmp_path):
    rows = [{"dataset": f"ood/{SEPARATOR}", "metric": "auroc", "value": 0.5}]
    curves = [{"dataset": f"ood/{SEPARATOR}", "curve": "any", "columns": {"x": [0.0, 1.0]}}]
    log = [{"epoch": 1, "note": SEPARATOR}]
    found: Any = {"measurements": rows, "curves": curves, "log": log, "trials": []}
    run = Run("e", SEPARATOR, SEPARATOR, 0, **found)
    write_collection(tmp_path / "e", [run])
    assert read_collection(tmp_path / "e") == [run]

    folder = tmp_path / SEPARATOR
    write_measurements(folder, rows, curves)
    assert (read(folder).measurements, read(folder).curves) == (rows, curves)


def test_a_failure_in_writing_leaves_the_collection_as_it_was(collection):
    before = {path.name: path.read_bytes() for path in collection.iterdir()}
    (run, *_) = read_collection(collection)
    broken = replace(run, curves=[{"dataset": "d", "curve": "c", "columns": {"x": [float("nan")]}}])
    with pytest.raises(ValueError, match="JSON"):
        write_collection(collection, [broken])
    assert {path.name: path.read_bytes() for path in collection.iterdir()} == before


def test_collecting_adds_and_replaces_complete_runs_and_keeps_the_others(experiment, tmp_path):
    script = tmp_path / "results" / COLLECT.name
    script.parent.mkdir()
    script.write_text(COLLECT.read_text(encoding="utf-8"), encoding="utf-8")
    runs = [read(folder) for folder in folders(experiment)]
    stale = replace(runs[0], measurements=[], curves=[])
    other = replace(runs[0], id="other")
    write_collection(script.parent / "digits", [stale, other])
    unfinished = folders(experiment)[-1] / CURVES
    content = unfinished.read_text()
    unfinished.unlink()
    try:
        assert not complete(unfinished.parent)
        command = [sys.executable, str(script), str(experiment.parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        unfinished.write_text(content)
    assert done.stdout.startswith("3 complete runs")
    kept = read_collection(script.parent / "digits")
    light = [run if run.seed == 0 else replace(run, curves=[]) for run in runs[:-1]]
    assert kept == sorted([other, *light], key=lambda run: run.id)


def test_the_runs_of_a_collection_can_be_run_again(tmp_path, monkeypatch):
    base = replace(EXPERIMENTS["digits"].base("ova"), epochs=1, shift="none")
    recipes = [replace(base, seed=seed) for seed in (0, 1)]
    old = [Run("digits", r.id, "ova", r.seed, recipe=asdict(r)) for r in recipes]
    write_collection(tmp_path / "digits", old)
    out = tmp_path / "runs"
    words = ["ova", "run", "--recipe", tmp_path / "digits" / RUNS, "--out", out]
    monkeypatch.setattr("sys.argv", [str(word) for word in words])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert not end.value.code
    assert [run.id for run in report_runs.read([out])] == [r.id for r in recipes]
    assert all(complete(out / "digits" / r.id) for r in recipes)


def test_runs_are_read_where_files_cannot_be_locked(experiment):
    """Windows has no `fcntl`; a report needs none."""
    code = (
        "import sys; sys.modules['fcntl'] = None; from pathlib import Path; from ova.report.runs import "
        f"read; print(len(read([Path({str(experiment)!r})])))"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(told.stdout) == 4
