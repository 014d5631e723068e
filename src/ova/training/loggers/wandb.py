"""A run of Weights & Biases, online or (WANDB_MODE=offline) in the folder of the run; the recipe is its config."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ova.errors import BadInput
from ova.files import read_text, write_text
from ova.training.loggers.board import Logged, Write
from ova.training.run_folder import RECIPE, WANDB, part

ID = "ova-run.txt"  # in the folder of the logs: by it a run that goes on finds itself


@contextmanager
def opened(what: Logged) -> Iterator[Write]:
    """The run of a folder: made, or gone on with, and finished or failed in the end."""
    run = run_of(what)
    # Every number is drawn by its epoch. Steps of its own would drop what comes at an earlier one.
    run.define_metric("epoch")
    run.define_metric("*", step_metric="epoch")
    try:
        yield lambda numbers, epoch: run.log({**numbers, "epoch": epoch})
    except BaseException:
        run.finish(exit_code=1)
        raise
    run.finish()


def run_of(what: Logged) -> Any:
    """The run that this folder has already, or a new one."""
    import wandb

    kept = what.folder / WANDB / ID
    known = read_text(kept).strip() if kept.exists() else None
    try:
        run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", what.experiment),
            name=what.name,
            dir=str(what.folder),
            config=part(what.folder / RECIPE),
            id=known,
            resume="allow" if known else None,
            # The numbers and the recipe, but neither the code around them nor what it prints.
            settings=wandb.Settings(console="off", disable_code=True, disable_git=True),
        )
    except wandb.Error as error:
        raise BadInput(
            f"Weights & Biases: {error}; log in with `wandb login`, or set WANDB_MODE=offline, which "
            "writes into the folder of the run for `wandb sync`"
        ) from error
    kept.parent.mkdir(exist_ok=True)
    write_text(kept, f"{run.id}\n")
    return run
