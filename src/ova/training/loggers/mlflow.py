"""A run of MLflow, wherever MLFLOW_TRACKING_URI says; the recipe is its parameters."""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ova.training.loggers.board import Logged, Write
from ova.training.run_folder import RECIPE, part

MARK = "ova.run"  # the tag by which a run that goes on finds itself


@contextmanager
def opened(what: Logged) -> Iterator[Write]:
    """The run of a folder: made, or gone on with, and finished or failed in the end."""
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
