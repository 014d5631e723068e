"""What training writes elsewhere is its own log: the same numbers by the same epochs, once, also when it goes on."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from typer.testing import CliRunner

from ova.cli.app import app
from ova.errors import EXTRAS, BadInput
from ova.training.loggers import LOGGERS, Logged, logged, measured
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
