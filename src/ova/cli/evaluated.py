"""Evaluated models: a table to read, rows to keep, and runs that the report takes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ova.cli.roles import Model
from ova.files import Row, sha256, write_lines
from ova.metrics import METRICS, Draws, paired_difference
from ova.metrics.evaluate import evaluate as measure
from ova.predictions import Predictions, Reading, SetName, read_any
from ova.training.manifest import manifest
from ova.training.run_folder import Run


@dataclass(frozen=True)
class Result:
    """What was measured on one model."""

    model: Model
    rows: list[Row]
    curves: list[Row]
    differences: list[Row]  # to the first model, on the same examples


def evaluate_files(
    models: Sequence[Model], *, normalised: bool, draws: Draws | None
) -> list[Result]:
    """Measure every model; nothing is written."""
    results: list[Result] = []
    for model in models:
        sets = {name: reader(path, name, normalised) for name, path in model.sets.items()}
        rows, curves = measure(sets, draws)
        against = differences(models[0], model, normalised, draws) if results and draws else []
        results.append(Result(model, rows, curves, against))
    return results


def reader(path: Path, name: str, normalised: bool) -> Callable[[], Predictions]:
    """What reads a file in its role when called."""
    return partial(read_any, path, Reading(normalised, outside=SetName(name).outside))


def differences(first: Model, other: Model, normalised: bool, draws: Draws) -> list[Row]:
    """Paired differences on the test set, where both models answered the same examples."""
    a, b = (reader(m.sets["test"], "test", normalised)() for m in (first, other))
    if not (np.array_equal(a.id, b.id) and np.array_equal(a.target, b.target)):
        return []
    found = (
        (name, paired_difference(metric, (a,), (b,), draws)) for name, metric in METRICS.items()
    )
    about = {"dataset": "test", "n": len(a), "against": first.name, "draws": draws.count}
    return [
        {**about, "metric": f"{name}_difference", **asdict(interval)}
        for name, interval in found
        if interval is not None and math.isfinite(interval.value)
    ]


def write_all(results: Sequence[Result], measurements: Path, output: Path | None) -> None:
    """The rows of all models in one file, and the report on them."""
    if output is not None:
        from ova.report.page import write_page

        runs = [as_run(str(number), result) for number, result in enumerate(results)]
        write_page(sorted(runs, key=lambda run: run.label), output)
    several = len(results) > 1
    write_lines(
        measurements,
        [
            ({"model": r.model.name} if several else {}) | row
            for r in results
            for row in [*r.rows, *r.differences]
        ],
    )


def as_run(name: str, result: Result) -> Run:
    """What was measured on a model, as the report takes it."""
    model = result.model
    sources = {name: sha256(path) for name, path in model.sets.items()}
    recipe = {"experiment": "evaluate", "data": model.sets["test"].name, "formulation": model.name}
    return Run(
        experiment="evaluate",
        id=name,
        label=model.name,
        seed=0,
        recipe={**recipe, "seed": 0},
        measurements=[*result.rows, *result.differences],
        curves=result.curves,
        manifest=manifest(0, sources, device="cpu"),
    )


def show(results: Sequence[Result]) -> None:
    """Print one table per kind of set, metrics down and models across."""
    from rich.console import Console
    from rich.table import Table

    console = Console(soft_wrap=True)
    for title, wanted in sections(results).items():
        table = Table(title=title, title_justify="left", box=None, header_style="bold")
        table.add_column("", no_wrap=True)
        for result in results:
            table.add_column(result.model.name, justify="right", no_wrap=True)
        for label, values in wanted.items():
            table.add_row(label, *(values.get(r.model.name, "") for r in results))
        console.print(table, "", highlight=False)


def sections(results: Sequence[Result]) -> dict[str, dict[str, dict[str, str]]]:
    """Title -> label -> model -> printed value, in order of appearance; undefined rows are left out."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for result in results:
        for row in [*result.rows, *result.differences]:
            if row["value"] is not None and (where := section(row)):
                values = found.setdefault(where[0], {}).setdefault(where[1], {})
                values[result.model.name] = printed(row)
    return found


def section(row: Row) -> tuple[str, str] | None:
    """The table and line of a row; single shifted sets are in the file only."""
    dataset, metric = SetName(row["dataset"]), str(row["metric"])
    if "against" in row:
        return f"difference to {row['against']}, same examples", metric.removesuffix("_difference")
    if dataset.shifted:
        return None
    if dataset.mean:
        if metric not in ("accuracy", "ece", "confidence"):
            return None
        at = f", severity {dataset.severity}" if dataset.severity else ""
        return "shift, mean over types", metric + at
    score = f" by {row['score']}" if "score" in row else ""
    return dataset, metric + score


def printed(row: dict[str, Any]) -> str:
    """A value with four digits after the point, and its interval if it has one."""
    value = f"{row['value']:z.4f}"
    return f"{value} [{row['low']:z.3f}, {row['high']:z.3f}]" if "low" in row else value
