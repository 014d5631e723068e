"""From gathered data to a model folder: the stages of every run, then threshold, calibration, page."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from lightning_fabric import Fabric

from ova.certificates import accuracy_values, coverage_value
from ova.data.task import Task
from ova.engine import Machine
from ova.errors import BadInput
from ova.experiment import MANIFEST, RECIPE, Event, Stage, predictions_path, stages
from ova.own import folder as model_folder
from ova.own.confidence import fitted
from ova.own.gathering import Gathered
from ova.predictions import Predictions, read
from ova.report.page import write_report
from ova.threshold import Threshold, fit_threshold, scored
from ova.training import BEST, CHECKPOINT, trained

RUN, REPORT = "run", "report.html"
TARGETS = (0.99, 0.98, 0.95, 0.9, 0.8)  # accuracies that are tried when the user asks for none
WORTH = 0.5  # share of the inputs that should be answered
COVERAGE = 0.95  # promised besides an accuracy that is easy, and alone when none can be


@dataclass(frozen=True)
class Wanted:
    """What the user wants promised."""

    accuracy: float | None = None
    coverage: float | None = None
    confidence: float = 0.95

    @property
    def said(self) -> bool:
        """Whether the user asked for anything."""
        return self.accuracy is not None or self.coverage is not None


def train(
    fabric: Fabric, gathered: Gathered, out: Path, machine: Machine, wanted: Wanted
) -> Iterator[Event]:
    """Train, or go on training, then fit threshold and calibration, write the model and its report."""
    run = out / RUN
    fits(out, gathered.task)
    yield from stages(fabric, gathered.recipe, run, machine, lambda: gathered.task)
    yield Stage("threshold")
    seen, rows = (
        read(predictions_path(run, name), probs=False) for name in ("validation", "calibration")
    )
    threshold = choose(seen, rows, wanted)
    yield Stage("report")
    write_report([run], out / REPORT)
    net = trained(gathered.task, gathered.recipe, run)
    manifest = json.loads((run / MANIFEST).read_text("utf-8"))
    model_folder.save(out, gathered, net, threshold, fitted(rows), manifest)
    for name in (CHECKPOINT, BEST):  # the way there is of no more use
        (run / name).unlink(missing_ok=True)


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


def choose(seen: Predictions, rows: Predictions, wanted: Wanted) -> Threshold:
    """The threshold that keeps what is wanted, fitted on `rows`, which nothing else has looked at.

    Without a wish, what to promise is decided on `seen`, the validation rows, so that the promise
    holds at its full confidence: an accuracy, and a coverage with it where the accuracy leaves
    room for that. Where not even the lowest accuracy can be promised, that most inputs are
    answered is promised instead, and nothing about the answers.
    """
    if wanted.said:
        return fit_threshold(rows, wanted.accuracy, wanted.confidence, coverage=wanted.coverage)
    accuracy, easy = target(seen, len(rows))
    fit = strictest if easy else fit_threshold
    found = fit(rows, accuracy, wanted.confidence)
    if found.promised:
        return found
    return fit_threshold(rows, None, wanted.confidence, coverage=COVERAGE)


def strictest(rows: Predictions, accuracy: float, confidence: float) -> Threshold:
    """The highest threshold that promises the accuracy and a coverage of 95 %.

    An easy task would be promised with every input answered, also those from outside. All values
    that `accuracy_values` gives are certified at once, so the highest may be taken.
    """
    found = fit_threshold(rows, accuracy, confidence, coverage=COVERAGE)
    if not found.promised:
        return found
    c, right = scored(rows)
    delta = (1 - confidence) / 2  # as for two promises that hold together
    values = accuracy_values(c, right, accuracy, delta)
    value = values[values <= coverage_value(np.sort(c)[::-1], COVERAGE, delta)].max()
    above = c > value
    return replace(
        found,
        value=float(value),
        answered=float(above.mean()),
        accuracy=float(right[above].mean()),
    )


def target(seen: Predictions, n: int) -> tuple[float, bool]:
    """The highest accuracy that lets enough be answered, and whether that is nearly everything.

    The rows are repeated until there are as many as the promise will rest on.
    """
    repeats = max(1, round(n / len(seen)))
    many = seen.take([row for row in range(len(seen)) for _ in range(repeats)])
    found = [fit_threshold(many, accuracy) for accuracy in TARGETS]
    enough = [k for k, threshold in enumerate(found) if threshold.answered >= WORTH]
    best = enough[0] if enough else max(range(len(found)), key=lambda k: found[k].answered)
    return TARGETS[best], found[best].answered >= COVERAGE
