"""Train, predict, measure: stages that each leave a file and are skipped when it is there."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric

from ova.corruptions import SUBSETS
from ova.data import DATASETS
from ova.data.task import Task
from ova.errors import BadInput, pick
from ova.files import Row, read_object, write_json
from ova.metrics.choice import PLAIN, choose
from ova.metrics.evaluate import evaluate
from ova.posthoc.calibration import CALIBRATIONS, Calibration, usual
from ova.predictions import Predictions, SetName, has_matrix, lacks, read
from ova.predictions.sets import VALIDATION
from ova.scores import scores_of
from ova.training import checkpoint
from ova.training.classifier import Classifier
from ova.training.engine import Machine
from ova.training.geometry import embedding_rows, landscape
from ova.training.loop import Progress, fit, trained
from ova.training.manifest import circumstances, manifest
from ova.training.predict import Predictor, fitted, predict_to
from ova.training.recipe import Recipe, from_json
from ova.training.run_folder import (
    CALIBRATION,
    CHECKPOINT,
    FAILURE,
    MANIFEST,
    MODEL,
    RECIPE,
    complete,
    locked,
    predictions_path,
    write_measurements,
)
from ova.training.scoring import scores_of_run
from ova.training.together import form_of

MATRIX = 20_000_000  # keep the whole probability matrix of a set up to this many entries
SHIFTED = 1_000_000  # the same for a shifted set, of which there are many


@dataclass(frozen=True)
class Place:
    """Where runs are written and where data is found."""

    out: Path = Path("runs")
    data_dir: Path | None = None

    def folder(self, recipe: Recipe) -> Path:
        """The folder of one run."""
        return self.out / recipe.experiment / recipe.id


@dataclass(frozen=True)
class Stage:
    """A piece of work that is about to begin: which of how many, and what."""

    name: str
    number: int = 0
    count: int = 0


Event = Progress | Stage


@lru_cache(maxsize=1)
def load_task(data: str, data_dir: Path | None) -> Task:
    """The task of a data set; the last one stays in memory for the next recipe."""
    return pick(DATASETS, data, "data set")(data_dir)


def carry_out(
    fabric: Fabric, recipe: Recipe, place: Place, machine: Machine
) -> Generator[Event, None, Classifier | None]:
    """Carry out a recipe whose data set has a name."""
    make = partial(load_task, recipe.data, place.data_dir)
    return stages(fabric, recipe, place.folder(recipe), machine, make)


def stages(
    fabric: Fabric,
    recipe: Recipe,
    folder: Path,
    machine: Machine,
    make: Callable[[], Task],
    weights: Path | None = None,
) -> Generator[Event, None, Classifier | None]:
    """Train, predict and measure what is not there yet, yielding what happens.

    The trained weights are kept in the folder, or where `weights` says. Gives the trained network,
    or None where all was there.
    """
    weights = weights or folder / MODEL
    with locked(folder) if fabric.global_rank == 0 else nullcontext():
        if fabric.global_rank == 0:
            claim(folder, recipe)
        fabric.barrier()
        if complete(folder):
            yield Stage("complete")
            return None
        yield Stage("data")
        task, form = make(), form_of(recipe)
        record = begin(folder, recipe, task, fabric, weights)
        if not weights.exists():
            with timed("training", record):
                yield from fit(fabric, task, recipe, folder, machine, weights)
        net: Classifier = fabric.to_device(trained(task, recipe, weights))  # type: ignore[assignment]
        predictor = Predictor(fabric, net, task, form, recipe.seed, recipe.samples)
        if not recipe.samples:  # a mean over passes has no features
            yield Stage("fitting scores")
            with timed("scores", record):
                scores = scores_of_run(predictor, recipe.seed, folder)
            predictor = replace(predictor, scores=scores, keep_features=machine.keep_features)
        with timed("prediction", record):
            yield from predict_all(predictor, recipe, folder)
        if fabric.global_rank == 0:
            yield Stage("measuring")
            with timed("measurement", record):
                record |= measure(predictor, recipe, folder)
            write_json(folder / MANIFEST, record)
            (folder / FAILURE).unlink(missing_ok=True)
        fabric.barrier()
        return net


def claim(folder: Path, recipe: Recipe) -> None:
    """Make the folder this recipe's, or see that it already is; clear what a killed run left."""
    path = folder / RECIPE
    if not path.exists():
        write_json(path, asdict(recipe))
    elif from_json(read_object(path), path) != recipe:
        problem = f"{path} is of another recipe; it was left untouched. Move the folder away."
        raise BadInput(problem)
    for part in folder.rglob(".*.part"):
        part.unlink()


def begin(folder: Path, recipe: Recipe, task: Task, fabric: Fabric, weights: Path) -> Row:
    """The manifest of the run: the one that an interrupted run began, or a new one."""
    path, record = folder / MANIFEST, {}
    if fabric.global_rank == 0:  # the others hear of it: a look at the disk could come too late
        engine: dict[str, str | int] = {"device": fabric.device.type}
        engine["threads"] = torch.get_num_threads()
        if path.exists():
            record = read_object(path)
            now = reached(folder, weights) | circumstances(**engine)
            record["resumed"] = [*record.get("resumed", []), now]
        else:
            record = manifest(recipe.seed, task.sources, **engine)
        write_json(path, record)
    heard: Row = fabric.broadcast(record)
    return heard


def reached(folder: Path, weights: Path) -> Row:
    """How far an interrupted run had come: its stage, and in training the epochs that are done."""
    if weights.exists():
        return {"stage": "prediction"}
    path = folder / CHECKPOINT
    done = checkpoint.facts(path).get("epoch", "0") if path.exists() else "0"
    return {"stage": "training", "epoch": int(done) if done.isdecimal() else 0}


@contextmanager
def timed(stage: str, record: Row) -> Iterator[None]:
    """Add the seconds that a stage takes to the record, once it has come to its end."""
    began, before = time.perf_counter(), record["seconds"].get(stage, 0.0)
    yield
    record["seconds"][stage] = round(before + time.perf_counter() - began, 2)


def chosen(task: Task, recipe: Recipe) -> list[SetName]:
    """The evaluation sets that the recipe asks for, in the task's order."""
    types = sorted({SetName(name).type for name in task.evaluations} - {""})
    if recipe.shift == "all":
        wanted = set(types)
    elif recipe.shift == "none":
        wanted = set()
    else:
        subsets = {**{name: (name,) for name in types}, **SUBSETS}
        wanted = set(pick(subsets, recipe.shift, "shift")) & set(types)
    return [n for n in map(SetName, task.evaluations) if not n.shifted or n.type in wanted]


def predict_all(predictor: Predictor, recipe: Recipe, folder: Path) -> Iterator[Stage]:
    """Write the predictions of every evaluation set that has none yet, or none with scores.

    Shifted sets have no fitted scores: nobody is told apart there, and they are many. The whole
    matrix of probabilities is kept where it is small: temperature and ensembles read it.
    """
    task = predictor.task
    makers = {name: task.evaluations[name] for name in chosen(task, recipe)}
    makers.setdefault(VALIDATION, lambda: task.validation)
    for number, (name, make) in enumerate(makers.items(), 1):
        path, mine = predictions_path(folder, name), predictor
        if name.shifted:
            mine = replace(predictor, scores=None, keep_features=False)
        wanted = fitted(mine.scores) if mine.scores else ()
        if path.exists() and (
            name in task.judged or not lacks(path, wanted, features=mine.keep_features)
        ):
            continue
        yield Stage(f"predicting {name}", number, len(makers))
        examples, limit = make(), recipe.shift_examples if name.shifted else 0
        cells = min(limit or len(examples), len(examples)) * len(task.classes)
        matrix = cells <= (SHIFTED if name.shifted else MATRIX)
        predict_to(path, mine, examples, limit, matrix)


def measure(predictor: Predictor, recipe: Recipe, folder: Path) -> Row:
    """Turn predictions into measurements and curves, and look at what the network learned.

    Gives what the manifest says of them: how many rows, and which score held-out rows choose.
    """
    choice, rows, curves = of_predictions(folder, chosen(predictor.task, recipe))
    more, pictures = embedding_rows(predictor.net, predictor.task)
    if recipe.data == "toy":
        pictures.append(landscape(predictor.net, predictor.form))
    write_measurements(folder, [*rows, *more], [*curves, *pictures])
    return {"rows": len(rows) + len(more), "score": choice}


def choose_score(held: Predictions, outside: Sequence[Predictions]) -> Row:
    """The score by which to refuse, by held-out rows of the classes and of none, never the test's."""
    if not len(held):
        return {"chosen": PLAIN, "why": "there are no held-out rows to choose by", "areas": {}}
    strange = [scores_of(p) for p in outside]
    common = [name for name in strange[0] if all(name in s for s in strange)] if strange else []
    found = choose(
        scores_of(held),
        held.correct,
        {name: np.concatenate([s[name] for s in strange]) for name in common} or None,
    )
    areas = {name: float(f"{area:.6g}") for name, area in found.areas.items()}
    return {"chosen": found.score, "why": found.why, "areas": areas}


def of_predictions(folder: Path, predicted: Iterable[SetName]) -> tuple[Row, list[Row], list[Row]]:
    """The chosen score, measurements and curves of the predictions in a folder.

    Every file is read once.
    """
    every = {*predicted, VALIDATION}
    strange = {name for name in every if name.chooses}
    held = read(predictions_path(folder, VALIDATION))
    outside = [read(predictions_path(folder, name)) for name in sorted(strange)]
    choice = choose_score(inside(held), outside)
    calibration = calibrate(held, every - strange, folder)
    sets: dict[str, Predictions | Callable[[], Predictions]] = {VALIDATION: inside(held)}
    sets |= {name: partial(measured, folder, name) for name in every - strange - {VALIDATION}}
    rows, curves = evaluate(sets, calibration=calibration, halves=(PLAIN, choice["chosen"]))
    return choice, rows, curves


def measured(folder: Path, name: SetName) -> Predictions:
    """The predictions on a set, as they are measured."""
    p = read(predictions_path(folder, name))
    return p if name.outside or name.calibrated else inside(p)


def inside(held: Predictions) -> Predictions:
    """Held-out rows without those of none of the classes.

    They count where a loss, a threshold or a calibration is fitted, but no metric is of both kinds.
    """
    return held if (held.target >= 0).all() else held.take(held.target >= 0)


def calibrate(held: Predictions, names: Iterable[SetName], folder: Path) -> Calibration | None:
    """Fit a calibration on held-out rows and keep it; if none fits, keep why."""
    used = [n for n in names if n == VALIDATION or n.calibrated]
    matrix = all(has_matrix(predictions_path(folder, name)) for name in used)
    method = usual(held.normalised, matrix)
    try:
        fitted = CALIBRATIONS[method].fit(held)
    except BadInput as error:  # a perfect or tiny validation set is no reason to lose a run
        write_json(folder / CALIBRATION, {"method": method, "why_not": str(error)})
        return None
    write_json(folder / CALIBRATION, fitted.to_json())
    return fitted
