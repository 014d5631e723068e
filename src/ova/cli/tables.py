"""The tables of the package as rows of name and meaning, for `ova list` and the documentation."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any

from ova.data import DATASETS
from ova.experiments import EXPERIMENTS
from ova.metrics import METRICS
from ova.models import MODELS
from ova.nn.formulations import FORMULATIONS
from ova.posthoc.calibration import CALIBRATIONS
from ova.training.recipe import Recipe, wanted

Rows = Iterable[tuple[str, str]]


def first_line(thing: Any) -> str:
    """The first sentence of a docstring."""
    return (inspect.getdoc(thing) or "").split("\n")[0]


def described(table: Mapping[str, Any]) -> Rows:
    """Every name of a table with what its docstring says."""
    return [
        (name, getattr(entry, "about", "") or first_line(entry)) for name, entry in table.items()
    ]


def corruptions() -> Rows:
    """Every corruption; their code comes with an extra, the rest of this module does not need it."""
    from ova.corruptions import CORRUPTIONS

    return described(CORRUPTIONS)


def settings() -> Rows:
    """Every field of a recipe with what it takes."""
    return [(f.name, f"{f.metadata.get('meaning', '')}: {wanted(f)}") for f in fields(Recipe)]


TABLES: dict[str, Callable[[], Rows]] = {
    "experiments": lambda: described(EXPERIMENTS),
    "formulations": lambda: described(FORMULATIONS),
    "models": lambda: described(MODELS),
    "datasets": lambda: described(DATASETS),
    "calibrations": lambda: described(CALIBRATIONS),
    "metrics": lambda: described(METRICS),
    "corruptions": corruptions,
    "settings": settings,
}
