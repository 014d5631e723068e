"""How long a training takes on this machine: some steps are timed, and the epochs planned by that."""

import tempfile
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from lightning_fabric import Fabric

from ova.errors import BadInput
from ova.files import read_object
from ova.training.engine import Machine
from ova.training.loop import Training
from ova.training.recipe import Recipe, from_json
from ova.training.run_folder import RECIPE
from ova.training.stages import Event, Stage
from ova.userdata.gather import Gathered
from ova.userdata.kinds import KINDS, patience

SECONDS, STEPS, WARM = 3.0, 30, 2  # timed at most; the first ones are slower and not counted
FORWARD = 0.4  # the time of a validation row, in that of a training row
ROOM = (
    0.85  # of the time, for the training itself; the rest is for what comes after it, and for error
)


@dataclass(frozen=True)
class Pace:
    """How long a step and an epoch take, in seconds."""

    step: float
    epoch: float


def planned(
    fabric: Fabric, gathered: Gathered, run: Path, machine: Machine
) -> Generator[Event, None, tuple[Gathered, Machine]]:
    """The recipe with as many epochs as there is time for, and the machine with its limit.

    A run that has begun keeps its recipe. Epochs that the user set are only cut where minutes were
    asked for too. The estimate is told before the training starts.
    """
    recipe, minutes = gathered.recipe, machine.minutes
    if minutes is None:
        minutes = 0.0 if gathered.own_epochs else KINDS[gathered.kind].minutes
    if not 0 <= minutes < float("inf"):
        raise BadInput(f"--minutes {minutes}: wanted a number of minutes, or 0 for no limit")
    machine = replace(machine, minutes=minutes)
    if (run / RECIPE).exists():
        fixed = gathered.own_epochs and not minutes
        recipe = recipe if fixed else begun(run / RECIPE, recipe)
        return replace(gathered, recipe=recipe), machine
    if not minutes:
        return gathered, machine
    yield Stage("timing some steps")
    pace = measured(fabric, gathered, machine)
    recipe = within(recipe, pace, minutes * 60)
    yield Stage(told(recipe, pace, minutes))
    return replace(gathered, recipe=recipe), machine


def begun(path: Path, recipe: Recipe) -> Recipe:
    """The recipe of the run that has begun, if only its plan of the time is another."""
    found = from_json(read_object(path), path)
    same = replace(found, epochs=recipe.epochs, steps=recipe.steps, patience=recipe.patience)
    return found if same == recipe and found.epochs <= recipe.epochs else recipe


def measured(fabric: Fabric, gathered: Gathered, machine: Machine) -> Pace:
    """Time some steps of a training that is thrown away."""
    task, recipe = gathered.task, replace(gathered.recipe, members=1, balance="off")
    with tempfile.TemporaryDirectory(prefix="ova-") as place:
        steps = Training(
            fabric, task, recipe, Path(place), replace(machine, minutes=0)
        ).train_epoch()
        step = timed(step for step in steps if step.row is None)
        steps.close()
    count, batch = (
        ceil(len(task.train) / recipe.batch_size),
        min(recipe.batch_size, len(task.train)),
    )
    return Pace(step, step * (count + FORWARD * len(task.validation) / batch))


def timed(steps: Iterator[object]) -> float:
    """Mean seconds of a step."""
    began, counted, first = time.perf_counter(), 0, 0.0
    last = began
    for number, _ in enumerate(steps, 1):
        last = time.perf_counter()
        if number <= WARM:
            began, first = last, last - began
            continue
        counted += 1
        if counted >= STEPS or last - began > SECONDS:
            break
    return (last - began) / counted if counted else first


def within(recipe: Recipe, pace: Pace, seconds: float) -> Recipe:
    """The recipe with no more epochs than there is time for; of an epoch that is too long a part.

    >>> r = Recipe(experiment="e", data="own", model="mlp", formulation="ova", epochs=100, lr=1, patience=25)
    >>> within(r, Pace(0.1, 10), 100).epochs, within(r, Pace(0.1, 10), 10_000).epochs
    (8, 100)
    >>> within(r, Pace(0.1, 1000), 100).steps
    850
    """
    trainings = recipe.members * (2 if recipe.balance == "auto" else 1)
    room = ROOM * seconds / trainings
    epochs = int(room / pace.epoch)
    if epochs >= recipe.epochs:
        return recipe
    usual = recipe.patience == patience(recipe.epochs)
    if epochs:
        return replace(
            recipe, epochs=epochs, patience=patience(epochs) if usual else recipe.patience
        )
    return replace(recipe, epochs=1, steps=max(1, int(room / pace.step)))


def told(recipe: Recipe, pace: Pace, minutes: float) -> str:
    """The estimate in words."""
    trainings = recipe.members * (2 if recipe.balance == "auto" else 1)
    one = recipe.steps * pace.step if recipe.steps else recipe.epochs * pace.epoch
    epochs = f"{recipe.epochs} epochs" if recipe.epochs > 1 else "1 epoch"
    return (
        f"about {clock(trainings * one)} of training, and not more than {clock(60 * minutes)} (--minutes): "
        f"{epochs} of {clock(pace.epoch)}" + (f", {trainings} times" if trainings > 1 else "")
    )


def clock(seconds: float) -> str:
    """Seconds as people say them.

    >>> clock(0.4), clock(42), clock(90), clock(600)
    ('0.4 s', '42 s', '1.5 minutes', '10 minutes')
    """
    if seconds < 10:
        return f"{seconds:.2g} s"
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds / 60:.2g} minutes"
