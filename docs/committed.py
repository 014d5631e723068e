"""The committed results, run by run, for the tables of the documents."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import mean, stdev
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIRST = ("softmax", "dm", "ova", "ova-dm")  # the paper's, in its order


@dataclass(frozen=True)
class Run:
    """One run: what was measured, by the largest p where there is a choice of scores."""

    folder: Path

    @cached_property
    def formulation(self) -> str:
        """The name of its formulation."""
        content = json.loads((self.folder / "recipe.json").read_text(encoding="utf-8"))
        return str(content["formulation"])

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The measurements that have a value."""
        lines = (self.folder / "measurements.jsonl").read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [
            row for row in rows if row["value"] is not None and row.get("score", "max_p") == "max_p"
        ]

    def values(self, dataset: str, metric: str, calibrated: bool = False) -> list[float]:
        """The values on a data set, or on all of a kind, as in `ood/`."""
        kind = dataset if dataset.endswith("/") else "none of them"
        return [
            row["value"]
            for row in self.rows
            if row["metric"] == metric
            and ("calibration" in row) == calibrated
            and (row["dataset"] == dataset or row["dataset"].startswith(kind))
        ]

    def outside(self) -> list[str]:
        """The names of its sets of no class."""
        found = (row["dataset"] for row in self.rows if row["dataset"].startswith("ood/"))
        return [name.removeprefix("ood/") for name in dict.fromkeys(found)]


def experiments() -> list[str]:
    """The experiments that have committed results."""
    return sorted(path.name for path in (ROOT / "results").iterdir() if path.is_dir())


def runs(experiment: str) -> dict[str, list[Run]]:
    """The runs of an experiment by formulation, the paper's first."""
    found: dict[str, list[Run]] = {}
    for path in sorted((ROOT / "results" / experiment).glob("*/measurements.jsonl")):
        run = Run(path.parent)
        found.setdefault(run.formulation, []).append(run)
    rank = {name: place for place, name in enumerate(FIRST)}
    return {name: found[name] for name in sorted(found, key=lambda n: (rank.get(n, 9), n))}


def spread(values: Iterable[float]) -> str:
    """A mean, and ± the standard deviation over seeds."""
    values = list(values)
    if not values:
        return "-"
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def markdown(header: Iterable[str], rows: Iterable[Iterable[str]], corner: str = "") -> str:
    """A table; the first column is named by its corner."""
    names = [corner, *header]
    return "\n".join([line(names), "|---" * len(names) + "|", *map(line, rows)])


def line(cells: Iterable[str]) -> str:
    """One line of a table."""
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
