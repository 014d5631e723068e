"""A recipe carried out in stages, each leaving a file; a stage whose file is there is not run again."""

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

import torch
from lightning_fabric import Fabric

from ova import checkpoint
from ova.calibration import CALIBRATIONS, usual
from ova.corruptions import SUBSETS
from ova.data import DATASETS
from ova.data.task import Task
from ova.engine import Machine
from ova.errors import BadInput
from ova.evaluation import Row, calibrated, evaluate, is_calibrated
from ova.files import read_lines, write_json, write_lines
from ova.formulations import FORMULATIONS, Formulation
from ova.geometry import embedding_rows, landscape
from ova.manifest import circumstances, manifest
from ova.prediction import Speaker, predict_to
from ova.predictions import Predictions, has_matrix, read
from ova.recipe import Recipe, from_json
from ova.tables import pick
from ova.training import BEST, CHECKPOINT, LOG, MODEL, Progress, fit, trained

RECIPE, PREDICTIONS, MEASUREMENTS = "recipe.json", "predictions", "measurements.jsonl"
CURVES, MANIFEST, FAILURE, LOCK = "curves.json", "manifest.json", "failure.txt", ".lock"
CALIBRATION = "calibration.json"
OURS = {CALIBRATION, RECIPE, PREDICTIONS, MEASUREMENTS, CURVES, MANIFEST, FAILURE, LOCK}
OURS |= {CHECKPOINT, BEST, MODEL, LOG, "tensorboard"}
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


def carry_out(fabric: Fabric, recipe: Recipe, place: Place, machine: Machine) -> Iterator[Event]:
    """Carry out a recipe whose data set has a name."""
    make = partial(load_task, recipe.data, place.data_dir)
    return stages(fabric, recipe, place.folder(recipe), machine, make)


def stages(
    fabric: Fabric, recipe: Recipe, folder: Path, machine: Machine, make: Callable[[], Task]
) -> Iterator[Event]:
    """Train, predict and measure what is not there yet, yielding what happens."""
    with locked(folder) if fabric.global_rank == 0 else nothing():
        if fabric.global_rank == 0:
            claim(folder, recipe)
        fabric.barrier()
        if complete(folder):
            yield Stage("complete")
            return
        yield Stage("data")
        task = make()
        record = begin(folder, recipe, task, fabric)
        if not (folder / MODEL).exists():
            yield from timed(fit(fabric, task, recipe, folder, machine), "training", record)
        speaker = Speaker(
            fabric,
            fabric.to_device(trained(task, recipe, folder)),  # type: ignore[arg-type]
            task,
            FORMULATIONS[recipe.formulation],
        )
        yield from timed(predict_all(speaker, recipe, folder), "prediction", record)
        if fabric.global_rank == 0:
            yield Stage("measuring")
            began = time.perf_counter()
            measure(speaker, recipe, folder)
            record["seconds"]["measurement"] = round(time.perf_counter() - began, 2)  # type: ignore[index]
            write_json(folder / MANIFEST, record)
            (folder / FAILURE).unlink(missing_ok=True)
        fabric.barrier()


def complete(folder: Path) -> bool:
    """Whether the last stage is done: the manifest is rewritten after the measurements."""
    finished = all((folder / name).exists() for name in (MEASUREMENTS, CURVES, MANIFEST))
    if finished:
        for name in (MEASUREMENTS, CURVES, MANIFEST):
            whole(folder / name)
    return finished


def whole(path: Path) -> None:
    """Refuse a file of a finished stage that is not what the stage writes."""
    try:
        read_lines(path) if path.suffix == ".jsonl" else json.loads(path.read_text("utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path} is damaged ({error}); it was left untouched. Move it away to compute it again."
        ) from None


def claim(folder: Path, recipe: Recipe) -> None:
    """Make the folder this recipe's, or see that it already is; clear what a killed run left."""
    path = folder / RECIPE
    if not path.exists():
        write_json(path, asdict(recipe))
    else:
        whole(path)
        stored = from_json(json.loads(path.read_text("utf-8")), path)
        if stored != recipe:
            raise BadInput(
                f"{path} is of another recipe; it was left untouched. Move the folder away."
            )
    for part in folder.rglob(".*.part"):
        part.unlink()


def strangers(folder: Path) -> list[Path]:
    """Files in a run folder that no stage writes; they are named and left alone."""
    return sorted(path for path in folder.glob("*") if path.name not in OURS)


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold the folder alone; a second run of the same recipe at the same time is refused, or waits."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / LOCK
    while True:
        with path.open("w") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                raise BadInput(
                    f"another process is working in {folder}; wait for it to end"
                ) from None
            # Who had it before may have removed the file that is now locked.
            if not path.exists() or not os.path.samestat(os.fstat(file.fileno()), path.stat()):
                continue
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


@contextmanager
def nothing() -> Iterator[None]:
    """Hold nothing."""
    yield


def begin(folder: Path, recipe: Recipe, task: Task, fabric: Fabric) -> dict[str, object]:
    """The manifest of the run: the one that an interrupted run began, or a new one."""
    path, record = folder / MANIFEST, {}
    if fabric.global_rank == 0:  # the others hear of it: a look at the disk could come too late
        engine: dict[str, str | int] = {"device": fabric.device.type}
        engine["threads"] = torch.get_num_threads()
        if path.exists():
            whole(path)
            record = json.loads(path.read_text("utf-8"))
            resumed = [*record.get("resumed", []), {**reached(folder), **circumstances(**engine)}]
            record = {**record, "resumed": resumed}
        else:
            record = manifest(recipe.seed, task.sources, **engine)
        write_json(path, record)
    heard: dict[str, object] = fabric.broadcast(record)
    return heard


def reached(folder: Path) -> dict[str, str | int]:
    """How far an interrupted run had come: its stage, and in training the epochs that are done."""
    if (folder / MODEL).exists():
        return {"stage": "prediction"}
    path = folder / CHECKPOINT
    done = checkpoint.facts(path).get("epoch", "0") if path.exists() else "0"
    return {"stage": "training", "epoch": int(done) if done.isdecimal() else 0}


def timed(events: Iterator[Event], stage: str, record: dict[str, object]) -> Iterator[Event]:
    """Pass events on and add the seconds they took to the record."""
    began = time.perf_counter()
    yield from events
    seconds: dict[str, float] = record["seconds"]  # type: ignore[assignment]
    seconds[stage] = round(seconds.get(stage, 0.0) + time.perf_counter() - began, 2)


def chosen(task: Task, recipe: Recipe) -> list[str]:
    """The evaluation sets that the recipe asks for, in the task's order."""
    types = sorted({name.split("/")[1] for name in task.evaluations if name.startswith("shift/")})
    if recipe.shift == "all":
        wanted = set(types)
    elif recipe.shift == "none":
        wanted = set()
    else:
        subsets = {**{name: (name,) for name in types}, **SUBSETS}
        wanted = set(pick(subsets, recipe.shift, "shift")) & set(types)
    return [n for n in task.evaluations if not n.startswith("shift/") or n.split("/")[1] in wanted]


def predict_all(speaker: Speaker, recipe: Recipe, folder: Path) -> Iterator[Stage]:
    """Write the predictions of every evaluation set that has none yet."""
    task = speaker.task
    makers = {name: task.evaluations[name] for name in chosen(task, recipe)}
    makers.setdefault("validation", lambda: task.validation)
    for number, (name, make) in enumerate(makers.items(), 1):
        path, shifted = predictions_path(folder, name), name.startswith("shift/")
        if path.exists():
            continue
        yield Stage(f"predicting {name}", number, len(makers))
        examples = make()
        limit = recipe.shift_examples if shifted else 0
        cells = min(limit or len(examples), len(examples)) * len(task.classes)
        predict_to(path, speaker, examples, limit, keeps_matrix(speaker.form, cells, shifted))


def keeps_matrix(form: Formulation, cells: int, shifted: bool) -> bool:
    """Whether all probabilities of a set are kept; of shifted sets only temperature reads them."""
    return (form.normalised and cells <= SHIFTED) if shifted else cells <= MATRIX


def predictions_path(folder: Path, name: str) -> Path:
    """The file with the predictions on an evaluation set."""
    return folder / PREDICTIONS / f"{name}.parquet"


def measure(speaker: Speaker, recipe: Recipe, folder: Path) -> None:
    """Turn predictions into measurements and curves."""
    names = sorted({*chosen(speaker.task, recipe), "validation"})
    sets = {name: partial(measured, predictions_path(folder, name), name) for name in names}
    rows, curves = evaluate(sets)
    rows += calibrate({name: predictions_path(folder, name) for name in names}, folder)
    more, pictures = embedding_rows(speaker.net, speaker.task)
    if recipe.data == "toy":
        pictures.append(landscape(speaker.net, speaker.form))
    write_json(folder / CURVES, [*curves, *pictures], indent=None)
    write_lines(folder / MEASUREMENTS, [*rows, *more])


def measured(path: Path, name: str) -> Predictions:
    """The predictions on a set; of held-out training rows, those of none of the classes left out.

    They count where a loss, a threshold or a calibration is fitted, but no metric is of both kinds.
    """
    said = read(path)
    if is_calibrated(name) or name.startswith("ood/") or (said.target >= 0).all():
        return said
    return said.take(said.target >= 0)


def calibrate(paths: dict[str, Path], folder: Path) -> list[Row]:
    """Fit a calibration on `validation`, keep it, and measure with it; if none fits, keep why."""
    used = [name for name in paths if name == "validation" or is_calibrated(name)]
    matrix = all(has_matrix(paths[name]) for name in used)
    held = read(paths["validation"], probs=matrix)
    method = usual(held.normalised, matrix)
    try:
        fitted = CALIBRATIONS[method].fit(held)
    except BadInput as error:  # a perfect or tiny validation set is no reason to lose a run
        write_json(folder / CALIBRATION, {"method": method, "why_not": str(error)})
        return []
    write_json(folder / CALIBRATION, fitted.to_json())
    probs = method == "temperature"
    return calibrated({n: partial(read, paths[n], probs=probs) for n in used}, fitted)
