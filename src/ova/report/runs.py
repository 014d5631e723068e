"""Reading the files of finished runs; no weights and no raw predictions are needed."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ova.errors import BadInput

Row = dict[str, Any]
MARKS = ("measurements.jsonl", "recipe.json", "curves.json")  # any of these makes a run folder


@dataclass(frozen=True)
class Run:
    """What one run left behind. `label` is what the charts call it: the formulation, if that is enough."""

    experiment: str
    id: str
    label: str
    seed: int
    recipe: Row = field(default_factory=dict)
    measurements: tuple[Row, ...] = ()
    curves: tuple[Row, ...] = ()
    log: tuple[Row, ...] = ()
    trials: tuple[Row, ...] = ()
    manifest: Row = field(default_factory=dict)


def read(paths: Sequence[Path]) -> list[Run]:
    """The runs below the paths: run folders, experiments, or folders of experiments, in any mixture."""
    folders: dict[Path, None] = {}
    for path in paths:
        found = list(find(path))
        if not found:
            raise BadInput(
                f"no runs in {path}: expected a folder that has {MARKS[0]} in it or below it, "
                "such as runs/<experiment>/<recipe id>"
            )
        folders.update(dict.fromkeys(found))
    runs = [one(folder) for folder in folders]
    return sorted(tell_apart(runs), key=lambda run: (run.experiment, run.label, run.seed, run.id))


def find(path: Path) -> Iterator[Path]:
    """The run folders at or below a path, at most three levels down."""
    if not path.is_dir():
        raise BadInput(
            f"{path} is not a folder; give a run, an experiment or a folder of experiments"
        )
    level = [path.resolve()]
    for _ in range(4):
        yield from (folder for folder in level if is_run(folder))
        level = sorted(
            child
            for folder in level
            if not is_run(folder)
            for child in folder.iterdir()
            if child.is_dir() and not child.name.startswith(".")
        )


def is_run(folder: Path) -> bool:
    """Whether the folder holds what a report can read."""
    return any((folder / name).is_file() for name in MARKS)


def one(folder: Path) -> Run:
    """Read one run folder; a missing file is an empty part, a broken one is an error with its name."""
    recipe = mapping(folder / "recipe.json")
    manifest = mapping(folder / "manifest.json")
    seed = recipe.get("seed", manifest.get("seed", 0))
    return Run(
        experiment=str(recipe.get("experiment") or folder.parent.name),
        id=folder.name,
        label=str(recipe.get("formulation") or folder.name),
        seed=seed if isinstance(seed, int) else 0,
        recipe=recipe,
        measurements=tuple(measurement_rows(folder / "measurements.jsonl")),
        curves=tuple(curve_rows(folder / "curves.json")),
        log=tuple(rows(folder / "log.jsonl", ("epoch",))),
        trials=tuple(trials(history_of(folder), recipe.get("formulation"))),
        manifest=manifest,
    )


def tell_apart(runs: Sequence[Run]) -> list[Run]:
    """Runs of one experiment, formulation and seed get the recipe fields that differ in their label."""
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.experiment, run.label), []).append(run)
    return [run for group in groups.values() for run in named(group)]


def named(group: list[Run]) -> Iterable[Run]:
    """The same runs, with the differing fields in the label when a seed occurs twice."""
    if max(Counter(run.seed for run in group).values()) == 1:
        return group
    keys = sorted({key for run in group for key in run.recipe} - {"seed", "id", "formulation"})
    differing = [k for k in keys if len({json.dumps(run.recipe.get(k)) for run in group}) > 1]
    if not differing:
        return [replace(run, label=f"{run.label} ({run.id})") for run in group]
    return [
        replace(run, label=run.label + "".join(f" · {k} {run.recipe.get(k)}" for k in differing))
        for run in group
    ]


def load(path: Path) -> Any:
    """The JSON value of a file, or an error that names the file and the place."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not JSON: {error}") from None


def mapping(path: Path) -> Row:
    """The JSON object of a file, empty when there is no file."""
    value = load(path) if path.is_file() else {}
    if not isinstance(value, dict):
        raise BadInput(f"{path} should hold one JSON object, not a {type(value).__name__}")
    return value


def rows(path: Path, needed: Sequence[str]) -> list[Row]:
    """The JSON objects of a file with one per line, each with the needed keys."""
    if not path.is_file():
        return []
    found: list[Row] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except json.JSONDecodeError as error:
            raise BadInput(f"{path}, line {number} is not JSON: {error}") from None
        found.append(checked(row, needed, f"{path}, line {number}"))
    return found


def history_of(folder: Path) -> Path:
    """Where `ova tune` keeps the trials of a run's experiment."""
    return folder.parent.with_name(f"{folder.parent.name}-tune") / "history.jsonl"


def trials(path: Path, formulation: Any) -> list[Row]:
    """The trials of a search, for one formulation."""
    found = rows(path, ("trial", "value"))
    return [row for row in found if row.get("formulation", formulation) == formulation]


def checked(row: Any, needed: Sequence[str], where: str) -> Row:
    """The row, if it is an object with the needed keys."""
    if not isinstance(row, dict) or any(key not in row for key in needed):
        raise BadInput(f"{where} should be a JSON object with {', '.join(needed)}")
    return row


def measurement_rows(path: Path) -> list[Row]:
    """Measurements; a value is a number or null."""
    found = rows(path, ("dataset", "metric", "value"))
    for number, row in enumerate(found, 1):
        if row["value"] is not None and not isinstance(row["value"], int | float):
            raise BadInput(f"{path}, row {number}: value should be a number or null")
    return found


def curve_rows(path: Path) -> list[Row]:
    """Curves; the columns of each are lists of one length."""
    value = load(path) if path.is_file() else []
    if not isinstance(value, list):
        raise BadInput(f"{path} should hold a JSON list of curves")
    for number, curve in enumerate(value, 1):
        checked(curve, ("dataset", "curve", "columns"), f"{path}, curve {number}")
        lengths = {len(c) for c in dict(curve["columns"]).values() if isinstance(c, list)}
        if len(lengths) > 1:
            raise BadInput(
                f"{path}, curve {number}: columns of different lengths {sorted(lengths)}"
            )
    return value


def experiments(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each experiment, in order."""
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.experiment, []).append(run)
    return grouped


def labels(runs: Sequence[Run]) -> list[str]:
    """What the charts call the runs, each once, the paper's four first."""
    known = ("softmax", "dm", "ova", "ova-dm")
    found = dict.fromkeys(run.label for run in runs)
    return [k for k in known if k in found] + sorted(k for k in found if k not in known)


def where(row: Mapping[str, Any], **wanted: Any) -> bool:
    """Whether the row has these values; a key that it lacks counts as agreeing."""
    return all(row.get(key, value) == value for key, value in wanted.items())
