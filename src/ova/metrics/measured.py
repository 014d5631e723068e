"""Measurements as a small table that shows itself, with the curves that they are read off."""

from collections.abc import Sequence
from typing import Any

from ova.files import Row
from ova.predictions.listing import Table

COLUMNS = ("dataset", "metric", "value", "n")
FURTHER = ("score", "calibration", "low", "high", "why")  # where a row has them
TOLD = ("accuracy", "ece", "answered", "answered_accuracy", "auroc")


class Evaluation(Table[Row]):
    """A row per data set and metric, and the curves of the pictures.

    Iterating gives the rows, mappings with all that is known of each; `value` reads one off.
    """

    def __init__(self, rows: Sequence[Row], curves: Sequence[Row] = ()) -> None:
        columns = [*COLUMNS, *(name for name in FURTHER if any(name in row for row in rows))]
        super().__init__(rows, columns, line_of(rows))
        self.curves = tuple(curves)

    def value(self, metric: str, dataset: str = "test", **parameters: Any) -> float | None:
        """The value of a metric, uncalibrated and by the confidence unless the parameters say more."""
        wanted = {"dataset": dataset, "metric": metric, "calibration": None} | parameters
        for row in self.rows:
            if row.get("score", "max_p") == parameters.get("score", "max_p") and all(
                row.get(key) == value for key, value in wanted.items() if key != "score"
            ):
                found: float | None = row["value"]
                return found
        raise KeyError(f"no {metric!r} of {dataset!r} was measured")


def line_of(rows: Sequence[Row]) -> str:
    """What was measured in one line: of the first rows of the metrics that most people ask for."""
    first: dict[str, Row] = {}
    for row in rows:
        if row["metric"] in TOLD and row["value"] is not None:
            first.setdefault(f"{row['dataset']} {row['metric']}", row)
    said = ", ".join(f"{name} {row['value']:.4g}" for name, row in list(first.items())[:6])
    return f"{len(rows)} measurements: {said}" if said else f"{len(rows)} measurements"
