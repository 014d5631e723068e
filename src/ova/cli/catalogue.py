"""`ova list`: what there is, by name."""

import inspect
from collections.abc import Iterable
from importlib import import_module
from typing import Annotated, Any

from rich.table import Table
from typer import Argument

from ova.cli.console import plain_console
from ova.errors import BadInput, pick, without

# What is listed, and where its table is; a new table is one line.
TABLES = {
    "experiments": "experiments.EXPERIMENTS",
    "formulations": "nn.formulations.FORMULATIONS",
    "scores": "scores.SCORES",
    "metrics": "metrics.METRICS",
    "detection": "metrics.DETECTION",
    "calibrations": "posthoc.calibration.CALIBRATIONS",
    "models": "models.MODELS",
    "datasets": "data.DATASETS",
    "corruptions": "corruptions.CORRUPTIONS",
    "settings": "training.recipe.SETTINGS",
}


def catalogue(kind: Annotated[str, Argument(help=f"all, {', '.join(TABLES)}.")] = "all") -> None:
    """List experiments, formulations, scores, metrics, models, data sets, corruptions and settings."""
    console = plain_console()
    for name in list(TABLES) if kind == "all" else [kind]:
        pick(TABLES, name, "list")
        table = Table(title=name, title_justify="left", box=None, show_header=False, padding=(0, 2))
        try:
            entries = rows(name)
        except ModuleNotFoundError as error:
            if kind != "all" or not isinstance(lacking := without(error), BadInput):
                raise
            entries = [(str(lacking), "")]  # the other lists are still worth to be seen
        for row in entries:
            table.add_row(*row)
        console.print(table, "")


def rows(name: str) -> Iterable[tuple[str, str]]:
    """Every entry of a table: its name, and what it says of itself or its docstring's first line."""
    module, _, table = TABLES[name].rpartition(".")
    entries: dict[str, Any] = getattr(import_module(f"ova.{module}"), table)
    return [(key, about(entry)) for key, entry in entries.items()]


def about(entry: Any) -> str:
    """What an entry of a table says of itself."""
    if isinstance(entry, str):
        return entry
    return getattr(entry, "about", "") or (inspect.getdoc(entry) or "").split("\n")[0]
