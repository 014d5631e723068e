"""Where else training is written down: each epoch's row and what was measured, for TensorBoard or MLflow."""

import hashlib
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from ova.errors import pick
from ova.training.loop import Progress
from ova.training.run_folder import RECIPE, TENSORBOARD, part, read_measurements
from ova.training.stages import Event, Stage

T = TypeVar("T")
Write = Callable[[Mapping[str, float], int], None]  # numbers by their names, and the epoch
MARK = "ova.run"  # the tag by which a run that goes on finds itself


@dataclass(frozen=True)
class Logged:
    """A run that is written down: its folder, what it is called, and what it belongs to."""

    folder: Path
    name: str
    experiment: str


def logged(
    events: Generator[Event, None, T], what: Logged, logger: str
) -> Generator[Event, None, T]:
    """Pass events on and write down what they say; of several processes only the first may.

    Every number of an epoch's row is there under its name, by its epoch; at the end come the
    measurements of the test set. The log of a run that goes on goes on; a complete run adds nothing.
    """
    opened = pick(LOGGERS, logger, "logger")
    with ExitStack() as stack:
        # Nothing lies in the folder before the work has looked whether it is a place for it.
        board = cache(lambda: stack.enter_context(opened(what)))
        epoch, complete = 0, False
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                if not complete:
                    board()(measured(what.folder), epoch)
                value: T = end.value
                return value
            complete |= isinstance(event, Stage) and event.name == "complete"
            if isinstance(event, Progress) and event.row:
                epoch = int(event.row["epoch"])
                board()({name: v for name, v in event.row.items() if is_number(v)}, epoch)
            yield event


def measured(folder: Path) -> dict[str, float]:
    """The uncalibrated measurements of the test set, by the confidence."""
    rows = (r for r in read_measurements(folder) if r["dataset"] == "test")
    plain = (r for r in rows if not r.keys() & {"calibration", "score"} and is_number(r["value"]))
    return {f"test_{r['metric']}": float(r["value"]) for r in plain}


def is_number(value: Any) -> bool:
    """Whether a value can be drawn."""
    return isinstance(value, int | float) and isfinite(value)


@contextmanager
def tensorboard(what: Logged) -> Iterator[Write]:
    """Files for TensorBoard in the folder of the run."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(what.folder / TENSORBOARD)) as board:

        def write(numbers: Mapping[str, float], epoch: int) -> None:
            for name, value in numbers.items():
                board.add_scalar(name, value, epoch)

        yield write


@contextmanager
def mlflow(what: Logged) -> Iterator[Write]:
    """A run of MLflow, wherever MLFLOW_TRACKING_URI says; the recipe is its parameters."""
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    client = MlflowClient()
    run = run_of(client, what)
    described = False

    def write(numbers: Mapping[str, float], epoch: int) -> None:
        nonlocal described
        if not described:
            for name, value in part(what.folder / RECIPE).items():
                client.log_param(run, name, value)  # the same again, where a run goes on
            described = True
        now = [Metric(name, float(value), 0, epoch) for name, value in numbers.items()]
        client.log_batch(run, metrics=now)

    try:
        yield write
    except BaseException:
        client.set_terminated(run, "FAILED")
        raise
    client.set_terminated(run, "FINISHED")


def run_of(client: Any, what: Logged) -> str:
    """The id of the run: the one that this folder has already, or a new one."""
    found = client.get_experiment_by_name(what.experiment)
    experiment = found.experiment_id if found else client.create_experiment(what.experiment)
    mark = hashlib.sha256(str(what.folder.resolve()).encode()).hexdigest()[:16]
    known = client.search_runs([experiment], f"tags.`{MARK}` = '{mark}'", max_results=1)
    if known:
        client.update_run(known[0].info.run_id, status="RUNNING")
        return str(known[0].info.run_id)
    made = client.create_run(experiment, tags={MARK: mark}, run_name=what.name)
    return str(made.info.run_id)


LOGGERS: Mapping[str, Callable[[Logged], AbstractContextManager[Write]]] = {
    "tensorboard": tensorboard,
    "mlflow": mlflow,
}
