"""The runs that a report is about: found below folders, told apart, grouped by experiment."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ova.errors import BadInput
from ova.nn.formulations import PAPER
from ova.training import run_folder
from ova.training.run_folder import MARKS, Run, is_collection, is_run, model_of


def read(paths: Sequence[Path]) -> list[Run]:
    """The runs below the paths: run folders, experiments, or folders of experiments, in any mixture."""
    folders: dict[Path, None] = {}
    for path in paths:
        found = list(find(path))
        if not found:
            raise BadInput(
                f"no runs in {path}: expected a folder that has {MARKS[0]} in it or below it, "
                "such as runs/<experiment>/<recipe id> or results/<experiment>"
            )
        folders.update(dict.fromkeys(found))
    homes = [home for folder in folders if (home := model_of(folder))]
    called = dict(zip(homes, names_of(homes), strict=True))
    runs = [run for folder in folders for run in of(folder, called)]
    return sorted(tell_apart(runs), key=lambda run: (run.experiment, run.label, run.seed, run.id))


def of(folder: Path, called: Mapping[Path, str]) -> list[Run]:
    """The runs of a folder: one, or many that are kept together; that of a model has its name."""
    if is_collection(folder):
        return run_folder.read_collection(folder)
    run, home = run_folder.read(folder), model_of(folder)
    return [run if home is None else replace(run, label=called[home])]


def names_of(homes: Sequence[Path]) -> list[str]:
    """Model folders by as many of their last parts as tell them apart.

    >>> names_of([Path("/m/cats"), Path("/m/dogs")])
    ['cats', 'dogs']
    >>> names_of([Path("/a/model"), Path("/b/model")])
    ['a/model', 'b/model']
    """
    deepest = max((len(home.parts) for home in homes), default=1)
    for count in range(1, deepest + 1):
        names = ["/".join(home.parts[-count:]) for home in homes]
        if len(set(names)) == len(homes):
            return names
    return [str(home) for home in homes]


def find(path: Path) -> Iterator[Path]:
    """The folders of runs and the collections at or below a path, at most three levels down."""
    if not path.is_dir():
        raise BadInput(
            f"{path} is not a folder; give a run, an experiment or a folder of experiments"
        )
    level = [path.resolve()]
    for _ in range(4):
        yield from (folder for folder in level if holds(folder))
        level = sorted(
            child
            for folder in level
            if not holds(folder)
            for child in folder.iterdir()
            if child.is_dir() and not child.name.startswith(".")
        )


def holds(folder: Path) -> bool:
    """Whether the folder itself has runs in it."""
    return is_run(folder) or is_collection(folder)


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
    keys = sorted(
        {key for run in group for key in run.recipe} - {"seed", "id", "formulation", "runs"}
    )
    differing = [k for k in keys if len({json.dumps(run.recipe.get(k)) for run in group}) > 1]
    if not differing:
        return [replace(run, label=f"{run.label} ({run.id})") for run in group]
    return [
        replace(run, label=run.label + "".join(f" · {k} {run.recipe.get(k)}" for k in differing))
        for run in group
    ]


def experiments(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """The runs of each experiment, in order."""
    grouped: dict[str, list[Run]] = {}
    for run in runs:
        grouped.setdefault(run.experiment, []).append(run)
    return grouped


def labels(runs: Sequence[Run]) -> list[str]:
    """What the charts call the runs, each once, the paper's four first."""
    found = dict.fromkeys(run.label for run in runs)
    return [k for k in PAPER if k in found] + sorted(k for k in found if k not in PAPER)


def where(row: Mapping[str, Any], **wanted: Any) -> bool:
    """Whether the row has these values; a key that it lacks counts as agreeing."""
    return all(row.get(key, value) == value for key, value in wanted.items())
