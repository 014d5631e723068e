"""From gathered data to a model folder: the stages of every run, then threshold, calibration, page."""

import json
from collections.abc import Iterator
from pathlib import Path

from lightning_fabric import Fabric

from ova.data.task import Task
from ova.errors import BadInput
from ova.modelfolder import folder as model_folder
from ova.modelfolder.confidence import fitted
from ova.modelfolder.promise import Wanted, check, promised
from ova.predictions import read
from ova.report.page import write_report
from ova.training import checkpoint
from ova.training.engine import Machine
from ova.training.loop import check_recipe
from ova.training.recipe import Recipe
from ova.training.run_folder import (
    BEST,
    CHECKPOINT,
    MANIFEST,
    MODEL,
    RECIPE,
    complete,
    predictions_path,
)
from ova.training.stages import Event, Stage, stages
from ova.userdata.gather import Gathered

RUN, REPORT = "run", "report.html"


def train(
    fabric: Fabric, gathered: Gathered, out: Path, machine: Machine, wanted: Wanted
) -> Iterator[Event]:
    """Train, or go on training, then fit threshold and calibration, write the model and its report."""
    run, recipe = out / RUN, gathered.recipe
    check(wanted, gathered.task)
    fits(out, gathered.task)
    if not complete(run):
        lend(out, run, recipe)
    yield from stages(fabric, recipe, run, machine, lambda: gathered.task)
    yield Stage("threshold")
    threshold = promised(run, wanted, recipe.seed)
    calibration = fitted(read(predictions_path(run, "calibration"), probs=False))
    yield Stage("report")
    write_report([run], out / REPORT)
    keep(out, run, recipe)
    manifest = json.loads((run / MANIFEST).read_text("utf-8"))
    model_folder.save(out, gathered, threshold, calibration, manifest)
    for name in (CHECKPOINT, BEST):  # the way there is of no more use
        (run / name).unlink(missing_ok=True)


def lend(out: Path, run: Path, recipe: Recipe) -> None:
    """Give the weights of a model back to its run, some of whose later files were taken away."""
    weights = out / model_folder.WEIGHTS
    if weights.exists() and run.is_dir() and not (run / MODEL).exists():
        check_recipe(checkpoint.facts(weights), recipe, weights)
        model_folder.untouched(out)
        (out / model_folder.MODEL).unlink(missing_ok=True)
        weights.replace(run / MODEL)


def keep(out: Path, run: Path, recipe: Recipe) -> None:
    """Move the weights of a finished run to the model: they are on the disk once."""
    weights = out / model_folder.WEIGHTS
    if (run / MODEL).exists():
        check_recipe(checkpoint.facts(run / MODEL), recipe, run / MODEL)
        (out / model_folder.MODEL).unlink(missing_ok=True)
        (run / MODEL).replace(weights)
        return
    if not weights.exists():
        raise BadInput(f"{out}: the weights are gone; move the folder away to train again")
    model_folder.untouched(out)
    if "recipe" in (facts := checkpoint.facts(weights)):
        check_recipe(facts, recipe, weights)


def fits(out: Path, task: Task) -> None:
    """Refuse a folder that holds something else, or a run on other data."""
    run = out / RUN
    if out.exists() and not (run / RECIPE).exists() and any(out.iterdir()):
        raise BadInput(f"{out} is not empty and not a model of ours; name another --out")
    if (run / MANIFEST).exists():
        try:
            before = json.loads((run / MANIFEST).read_text("utf-8"))["data"]
        except (ValueError, KeyError) as error:
            raise BadInput(f"{run / MANIFEST} is damaged: {error}") from None
        if before != dict(task.sources):
            raise BadInput(f"{out} was trained on other data; name another --out")
