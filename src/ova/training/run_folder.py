"""The folder of a run: the names of its files, and how each is written and read.

A collection keeps many runs of one experiment in three files of JSON lines, `runs.jsonl`,
`measurements.jsonl` and `curves.jsonl`, as committed results do; both are read as the same `Run`s.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ova.errors import BadInput
from ova.files import (
    Row,
    checked,
    held,
    read_json,
    read_lines,
    read_object,
    write_beside,
    write_json,
    write_lines,
)

RECIPE, PREDICTIONS, MEASUREMENTS = "recipe.json", "predictions", "measurements.jsonl"
CURVES, MANIFEST, FAILURE, LOCK = "curves.json", "manifest.json", "failure.txt", ".lock"
CALIBRATION, TENSORBOARD, WANDB = "calibration.json", "tensorboard", "wandb"
SCORED = "scores"  # a folder
CHECKPOINT, BEST, MODEL = "checkpoint.safetensors", "best.safetensors", "model.safetensors"
LOG, MEMBER = "log.jsonl", "members"  # the latter a folder with one for each
BALANCE, DECISION = "balance", "balance.json"  # both ways of weighting classes, and which was kept
OURS = {RECIPE, PREDICTIONS, MEASUREMENTS, CURVES, MANIFEST, FAILURE, LOCK, CALIBRATION}
OURS |= {TENSORBOARD, WANDB, CHECKPOINT, BEST, MODEL, LOG, MEMBER, BALANCE, DECISION, SCORED}
MARKS = (MEASUREMENTS, RECIPE, CURVES)  # any of these makes a folder one of a run
# What the report reads of each curve; a curve of another name may have any columns.
CURVE_COLUMNS = {
    "reliability": ("lower", "upper", "count", "confidence", "accuracy"),
    "accuracy_confidence": ("threshold", "kept", "accuracy", "answered"),
    "risk_coverage": ("coverage", "risk"),
    "histogram": ("lower", "upper", "right", "wrong", "outside"),
    "roc": ("fpr", "tpr"),
    "precision_recall": ("recall", "precision"),
    "embedding": ("x", "y", "label", "kind"),
    "landscape": ("x", "y", "confidence"),
}
NUMBER_OR_NOTHING, NAME = (int, float, type(None)), (str, int)
KINDS = {  # of the cells of columns that may have others than numbers
    "confidence": NUMBER_OR_NOTHING,
    "accuracy": NUMBER_OR_NOTHING,
    "label": NAME,
    "kind": NAME,
}
IN_MODEL, OF_MODEL = "run", "model.json"  # the run in a model folder, and what marks that
RUNS, ALL_CURVES = "runs.jsonl", "curves.jsonl"  # of a collection, beside MEASUREMENTS
PARTS = ("recipe", "manifest", "calibration", "log")  # of each run, in its line of RUNS
LISTS = {"log": ("epoch",), "trials": ("trial", "value")}  # of rows with these keys
HISTORY = "history.jsonl"  # of a search


@dataclass(frozen=True)
class Run:
    """What a run left behind besides weights and predictions; `label` is what charts call it."""

    experiment: str
    id: str
    label: str
    seed: int
    recipe: Row = field(default_factory=dict)
    measurements: Sequence[Row] = ()
    curves: Sequence[Row] = ()
    log: Sequence[Row] = ()
    trials: Sequence[Row] = ()
    manifest: Row = field(default_factory=dict)
    calibration: Row = field(default_factory=dict)


def predictions_path(folder: Path, name: str) -> Path:
    """The file with the predictions on an evaluation set."""
    return folder / PREDICTIONS / f"{name}.parquet"


def write_measurements(folder: Path, rows: Iterable[Row], curves: Sequence[Row]) -> None:
    """Write measurements and curves; the measurements come last, because they end the stage."""
    write_json(folder / CURVES, list(curves), indent=None)
    write_lines(folder / MEASUREMENTS, rows)


def is_run(folder: Path) -> bool:
    """Whether the folder is of one run."""
    return any((folder / name).is_file() for name in MARKS) and not is_collection(folder)


def model_of(folder: Path) -> Path | None:
    """The model folder that the run in a folder belongs to, if it does."""
    ours = folder.name == IN_MODEL and (folder.parent / OF_MODEL).is_file()
    return folder.parent if ours else None


def is_collection(folder: Path) -> bool:
    """Whether the folder holds many runs together."""
    return (folder / RUNS).is_file()


def complete(folder: Path) -> bool:
    """Whether the last stage is done: the manifest is rewritten after the measurements."""
    if not all((folder / name).exists() for name in (MEASUREMENTS, CURVES, MANIFEST)):
        return False
    run = read(folder)  # a damaged file is an error, not a reason to compute it again
    seconds, rows = (run.manifest.get(name) for name in ("seconds", "rows"))
    if not isinstance(seconds, dict) or "measurement" not in seconds:
        return False
    wanted = rows if isinstance(rows, int) else 1  # older manifests do not say it
    if len(run.measurements) < wanted:
        raise BadInput(
            f"{folder / MEASUREMENTS} is damaged, it has {len(run.measurements)} of at least {wanted} "
            "rows; it was left untouched. Move it away to compute it again."
        )
    return True


def strangers(folder: Path) -> list[Path]:
    """Files in a run folder that no stage writes; they are named and left alone."""
    return sorted(path for path in folder.glob("*") if path.name not in OURS)


def read(folder: Path) -> Run:
    """One run; a missing file is an empty part, a damaged one is an error with its name."""
    recipe, manifest = part(folder / RECIPE), part(folder / MANIFEST)
    history = folder.parent.with_name(f"{folder.parent.name}-tune") / HISTORY
    trials = in_order(lines(history, ()), LISTS["trials"], f"{history}")
    form = recipe.get("formulation")
    return Run(
        **named(recipe, manifest, folder.name, folder.parent.name),
        measurements=read_measurements(folder),
        curves=read_curves(folder / CURVES),
        log=read_log(folder),
        trials=[row for row in trials if row.get("formulation", form) == form],
        calibration=part(folder / CALIBRATION),
    )


def named(recipe: Row, manifest: Row, name: str, experiment: str) -> Row:
    """Recipe and manifest of a run, and what it is called after them; else after its folders."""
    seed = recipe.get("seed", manifest.get("seed", 0))
    return {
        "experiment": str(recipe.get("experiment") or experiment),
        "id": name,
        "label": str(recipe.get("formulation") or name),
        "seed": seed if isinstance(seed, int) else 0,
        "recipe": recipe,
        "manifest": manifest,
    }


def part(path: Path) -> Row:
    """The JSON object of a file, empty when there is no file."""
    return read_object(path) if path.is_file() else {}


def lines(path: Path, needed: Sequence[str]) -> list[Row]:
    """The rows of a file, none when there is no file."""
    return read_lines(path, needed) if path.is_file() else []


def read_log(folder: Path) -> list[Row]:
    """One row per epoch."""
    return in_order(lines(folder / LOG, ()), LISTS["log"], f"{folder / LOG}")


def read_measurements(folder: Path) -> list[Row]:
    """One row per set and metric; a value is a number or null."""
    found = lines(folder / MEASUREMENTS, ("dataset", "metric", "value"))
    for number, row in enumerate(found, 1):
        where = f"{folder / MEASUREMENTS}, row {number}"
        plain(row, ("dataset", "metric"), ("halves",), where)
        if row["value"] is not None and not isinstance(row["value"], int | float):
            raise BadInput(f"{where}: value should be a number or null")
    return found


def read_curves(path: Path) -> list[Row]:
    """The curves of one run."""
    value = read_json(path) if path.is_file() else []
    if not isinstance(value, list):
        raise BadInput(f"{path} should hold a JSON list of curves")
    return [curve(row, f"{path}, curve {number}") for number, row in enumerate(value, 1)]


def curve(value: Any, where: str) -> Row:
    """The value, if it is a curve: its columns are lists of one length."""
    row = checked(value, ("dataset", "curve", "columns"), where)
    plain(row, ("dataset", "curve"), ("columns",), where)
    needed = CURVE_COLUMNS.get(row["curve"], ())
    columns = checked(row["columns"], needed, f"{where}: columns")
    for name, column in columns.items():
        kinds = KINDS.get(name, (int, float))
        if not isinstance(column, list) or not all(isinstance(cell, kinds) for cell in column):
            raise BadInput(f"{where}: column {name} should be a list of numbers")
    lengths = {len(c) for c in columns.values()}
    if len(lengths) > 1:
        raise BadInput(f"{where}: columns of different lengths {sorted(lengths)}")
    return row


def plain(row: Row, names: Sequence[str], lists: Sequence[str], where: str) -> None:
    """Refuse a row whose names are no strings, or whose other fields but some are no plain values."""
    for name in names:
        if not isinstance(row[name], str):
            raise BadInput(f"{where}: {name} should be a string")
    for name, value in row.items():
        if name not in lists and isinstance(value, list | dict):
            raise BadInput(f"{where}: {name} should be one value")


def in_order(rows: Sequence[Any], needed: Sequence[str], where: str) -> list[Row]:
    """The rows, if they are objects of plain values, numbered by the first that is needed."""
    found = [checked(row, needed, f"{where}, row {k}") for k, row in enumerate(rows, 1)]
    for k, row in enumerate(found, 1):
        plain(row, (), (), f"{where}, row {k}")
        if not isinstance(row[needed[0]], int):
            raise BadInput(f"{where}, row {k}: {needed[0]} should be a whole number")
    return found


def read_collection(folder: Path) -> list[Run]:
    """The runs that are kept together in a folder; what does not fit is an error with its file."""
    known = lines(folder / RUNS, ("run", *PARTS))
    check_runs(known, folder / RUNS)
    names = [run["run"] for run in known]
    curves = lines(folder / ALL_CURVES, ("run",))
    for number, row in enumerate(curves, 1):
        curve(row, f"{folder / ALL_CURVES}, row {number}")
    rows_of = by_run(read_measurements(folder), names, folder / MEASUREMENTS)
    curves_of = by_run(curves, names, folder / ALL_CURVES)
    return [
        Run(
            **named(run["recipe"], run["manifest"], run["run"], folder.name),
            measurements=rows_of[run["run"]],
            curves=curves_of[run["run"]],
            log=run["log"],
            trials=run.get("trials", []),
            calibration=run["calibration"],
        )
        for run in known
    ]


def check_runs(known: Sequence[Row], path: Path) -> None:
    """Refuse runs with a part of the wrong kind, or with the name of another."""
    seen: set[str] = set()
    for number, run in enumerate(known, 1):
        for name in (*PARTS, "trials"):
            kind, called = (list, "list") if name in LISTS else (dict, "object")
            part = run.get(name, [])  # only of trials there may be none
            if not isinstance(part, kind):
                raise BadInput(f"{path}, row {number}: {name} should be a JSON {called}")
            if isinstance(part, list):
                in_order(part, LISTS[name], f"{path}, row {number}: {name}")
        if not isinstance(run["run"], str) or run["run"] in seen:
            raise BadInput(f"{path}, row {number}: run {run['run']!r} should be a name of its own")
        seen.add(run["run"])


def by_run(rows: Sequence[Row], names: Sequence[str], path: Path) -> dict[str, list[Row]]:
    """The rows of each run, without its name; a row of no known run is an error."""
    found: dict[str, list[Row]] = {name: [] for name in names}
    for number, row in enumerate(rows, 1):
        name = str(row.get("run"))
        if name not in found:
            raise BadInput(f"{path}, row {number}: {RUNS} has no run {name!r}")
        found[name].append({key: value for key, value in row.items() if key != "run"})
    return found


def write_collection(folder: Path, runs: Iterable[Run]) -> None:
    """Keep runs of one experiment together, in the order of their names.

    All three files are written before the first takes its place, so a failure leaves the old ones.
    """
    known, rows, curves = [], [], []
    for run in sorted(runs, key=lambda run: run.id):
        trials = {"trials": run.trials} if run.trials else {}
        known.append({"run": run.id, **{name: getattr(run, name) for name in PARTS}, **trials})
        rows += [{"run": run.id, **row} for row in run.measurements]
        curves += [{"run": run.id, **row} for row in run.curves]
    # Without spaces: there are many lines.
    packed = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    with (
        write_beside(folder / RUNS) as one,
        write_beside(folder / ALL_CURVES) as two,
        write_beside(folder / MEASUREMENTS) as three,
    ):
        for path, content in ((one, known), (two, curves), (three, rows)):
            text = "".join(packed.encode(row) + "\n" for row in content)
            path.write_text(text, encoding="utf-8", errors="backslashreplace")


@contextmanager
def locked(folder: Path, wait: bool = False) -> Iterator[None]:
    """Hold the folder alone; a second run of the same recipe at the same time is refused, or waits."""
    folder.mkdir(parents=True, exist_ok=True)
    with held(folder / LOCK, wait) as ours:
        if ours is False:
            raise BadInput(f"another process is working in {folder}; wait for it to end")
        try:
            yield
        finally:
            (folder / LOCK).unlink(missing_ok=True)
