"""What training writes elsewhere is its own log: the same numbers by the same epochs, once, also when it goes on."""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from ova.cli.app import app
from ova.errors import EXTRAS, BadInput
from ova.modelfolder.door import train
from ova.training.loggers import LOGGERS, installed
from ova.training.loggers.board import Logged
from ova.training.loggers.logged import logged, measured
from ova.training.loop import Progress
from ova.training.run_folder import read_log
from ova.training.stages import Stage

# Of the libraries, while they are imported and draw up their tables.
pytestmark = pytest.mark.filterwarnings("ignore")


def ova(*args: object) -> None:
    done = CliRunner().invoke(app, [str(arg) for arg in args])
    assert done.exit_code == 0, (done.output, done.exception)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    X, y = load_iris(return_X_y=True)
    path = tmp_path / "iris.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["a", "b", "c", "d", "label"], *np.c_[X, y].tolist()])
    return path


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """What TensorBoard reads there, by name and epoch; a number that comes twice is an error."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    seen = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    found: dict[str, dict[int, float]] = {}
    for name in seen.Tags()["scalars"]:
        values = seen.Scalars(name)
        assert len({v.step for v in values}) == len(values), name
        found[name] = {v.step: v.value for v in values}
    return found


def test_every_logger_has_its_extra():
    assert set(LOGGERS) <= set(EXTRAS)
    with pytest.raises(BadInput, match="no logger called 'wanb'"):
        next(logged(iter(()), Logged(Path(), "a", "b"), "wanb"))  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="no logger called 'wanb'; did you mean 'wandb'"):
        installed("wanb")


@pytest.mark.slow
def test_train_writes_its_log_for_tensorboard(table, tmp_path):
    folder = tmp_path / "model" / "run"
    command = (
        "train",
        table,
        "--out",
        tmp_path / "model",
        "--set",
        "epochs=4",
        "--accelerator",
        "cpu",
    )
    ova(*command, "--log", "tensorboard")
    log, found = read_log(folder), scalars(folder / "tensorboard")
    assert len(log) > 1
    for name in ("loss", "accuracy", "validation_loss", "lr"):
        assert list(found[name]) == [row["epoch"] for row in log]
        np.testing.assert_allclose(
            list(found[name].values()), [row[name] for row in log], rtol=1e-6
        )
    last = log[-1]["epoch"]
    assert found["test_accuracy"] == {last: pytest.approx(measured(folder)["test_accuracy"])}
    ova(*command, "--log", "tensorboard")  # complete: nothing new
    assert scalars(folder / "tensorboard") == found


@pytest.mark.slow
def test_run_writes_its_log_for_mlflow_and_the_same_run_again_is_one(tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'mlflow.db'}")
    command = (
        "run",
        "digits",
        "--only",
        "ova",
        "--seeds",
        1,
        "--set",
        "epochs=2",
        "--out",
        tmp_path / "runs",
    )
    ova(*command, "--log", "mlflow")
    ova(*command, "--log", "mlflow")
    (folder,) = (tmp_path / "runs" / "digits").iterdir()
    from mlflow import MlflowClient

    client = MlflowClient()
    (experiment,) = client.search_experiments(filter_string="name = 'digits'")
    (run,) = client.search_runs([experiment.experiment_id])
    assert (run.info.run_name, run.info.status) == (folder.name, "FINISHED")
    assert run.data.params["formulation"] == "ova"
    for name in ("loss", "validation_accuracy"):
        history = client.get_metric_history(run.info.run_id, name)
        assert [m.step for m in history] == [row["epoch"] for row in read_log(folder)]
        np.testing.assert_allclose([m.value for m in history], [r[name] for r in read_log(folder)])
    assert run.data.metrics["test_ece"] == pytest.approx(measured(folder)["test_ece"])


def passed(work):
    """The kinds of the events, then what the work gives."""
    given = []

    def whole():
        given.append((yield from work))

    yield from (type(event).__name__ for event in whole())
    yield from given


def test_what_is_no_number_is_left_out_and_the_value_comes_through(tmp_path, monkeypatch):
    written: list[Any] = []

    class Board:
        def __init__(self, place: str) -> None:
            assert place == str(tmp_path / "tensorboard")

        def __enter__(self):
            return self

        def __exit__(self, *_: object) -> None:
            written.append("closed")

        def add_scalar(self, name: str, value: float, epoch: int) -> None:
            written.append((name, value, epoch))

    def events():
        yield Stage("data")
        row = {"epoch": 3, "loss": 0.5, "accuracy": float("nan"), "note": "words"}
        yield Progress(3, 1, 1, 1, None, row)  # type: ignore[arg-type]
        yield Progress(4, 1, 1, 1, None)  # type: ignore[arg-type]
        yield Stage("complete")
        return "the network"

    monkeypatch.setattr("torch.utils.tensorboard.SummaryWriter", Board)
    work = logged(events(), Logged(tmp_path, "a", "b"), "tensorboard")
    assert list(passed(work)) == ["Stage", "Progress", "Progress", "Stage", "the network"]
    assert written == [("epoch", 3, 3), ("loss", 0.5, 3), "closed"]


# Weights & Biases as this package sees it: what it is told is kept in a file, also by another process.
STAND_IN = """
import json, os, pathlib

class Error(Exception):
    pass

class Settings:
    def __init__(self, console, disable_code, disable_git):
        assert (console, disable_code, disable_git) == ("off", True, True)

class Run:
    def __init__(self, id):
        self.id = id
        self.steps = {}

    def tell(self, **said):
        with open(os.environ["STAND_IN"], "a") as file:
            file.write(json.dumps(said) + "\\n")

    def define_metric(self, name, step_metric=None):
        self.steps[name] = step_metric

    def log(self, numbers):
        assert self.steps == {"epoch": None, "*": "epoch"}
        self.tell(run=self.id, numbers=numbers)

    def finish(self, exit_code=0):
        self.tell(run=self.id, exit_code=exit_code)

def init(*, id, dir, settings, **said):
    if os.environ.get("WANDB_MODE") != "offline":
        raise Error("no API key configured")
    assert pathlib.Path(dir).is_dir()
    run = Run(id or "made-by-them")
    run.tell(run=run.id, **said)
    return run
"""


@pytest.fixture
def wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which the stand-in keeps what it was told."""
    said = tmp_path / "said.jsonl"
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "wandb.py").write_text(STAND_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path / "modules")
    monkeypatch.delitem(sys.modules, "wandb", raising=False)
    monkeypatch.delenv("WANDB_PROJECT", raising=False)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("STAND_IN", str(said))
    return said


def events(*epochs: int) -> Iterator[Any]:
    """What a training says that begins with these epochs."""
    for epoch in epochs:
        yield Progress(epoch, 1, 1, 1, None, {"epoch": epoch, "loss": 1 / epoch})  # type: ignore[arg-type]


def test_a_run_of_wandb_that_is_stopped_goes_on_as_the_same_run(tmp_path, wandb):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text('{"seed": 3}', encoding="utf-8")
    what = Logged(tmp_path / "run", "a name", "ova train")

    def stopped():
        yield from events(1, 2)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(logged(stopped(), what, "wandb"))
    rows = [{"epoch": epoch, "loss": 1 / epoch} for epoch in (1, 2, 3)]
    lines = "".join(f"{json.dumps(row)}\n" for row in rows)
    (tmp_path / "run" / "log.jsonl").write_text(lines, encoding="utf-8")
    row = {"dataset": "test", "metric": "ece", "value": 0.25}
    (tmp_path / "run" / "measurements.jsonl").write_text(json.dumps(row), encoding="utf-8")
    list(logged(events(3), what, "wandb"))  # type: ignore[arg-type]
    list(logged(events(), what, "wandb"))  # type: ignore[arg-type]  # only the measuring was left
    began = {"run": "made-by-them", "project": "ova train", "name": "a name", "config": {"seed": 3}}
    written = [{"run": "made-by-them", "numbers": row} for row in rows]
    end = {"run": "made-by-them", "numbers": {"test_ece": 0.25, "epoch": 3}}
    assert [json.loads(line) for line in wandb.read_text(encoding="utf-8").splitlines()] == [
        *(began | {"resume": None}, *written[:2], {"run": "made-by-them", "exit_code": 1}),
        *(began | {"resume": "allow"}, written[2], end, {"run": "made-by-them", "exit_code": 0}),
        *(began | {"resume": "allow"}, end, {"run": "made-by-them", "exit_code": 0}),
    ]


def test_wandb_without_a_login_says_what_to_do(tmp_path, wandb, monkeypatch):
    monkeypatch.delenv("WANDB_MODE")
    with pytest.raises(BadInput, match="no API key configured; log in with `wandb login`, or set"):
        list(logged(events(1), Logged(tmp_path, "a", "b"), "wandb"))  # type: ignore[arg-type]


@pytest.mark.slow
def test_the_python_door_writes_its_log_as_the_command_does(tmp_path, wandb, monkeypatch):
    monkeypatch.setenv("WANDB_PROJECT", "flowers")
    X, y = load_iris(return_X_y=True)
    with pytest.raises(BadInput, match="name one, out='model'"):
        train(X, y, log="wandb", epochs=2)
    with pytest.raises(BadInput, match="no logger called 'papyrus'"):
        train(X, y, log="papyrus", epochs=2, out=tmp_path / "model")
    assert not (tmp_path / "model").exists()
    train(X, y, log="wandb", epochs=2, out=tmp_path / "model")
    said = [json.loads(line) for line in wandb.read_text(encoding="utf-8").splitlines()]
    own = read_log(tmp_path / "model" / "run")
    assert (said[0]["project"], said[0]["name"]) == ("flowers", str(tmp_path / "model"))
    assert [line["numbers"]["loss"] for line in said[1:-2]] == [row["loss"] for row in own]
    assert (
        said[-2]["numbers"]["test_accuracy"]
        == measured(tmp_path / "model" / "run")["test_accuracy"]
    )
    assert said[-1]["exit_code"] == 0
