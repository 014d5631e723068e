"""Reliability diagrams under the strongest shift (the paper's S3)."""

from collections.abc import Sequence

from ova.files import Row
from ova.predictions.sets import SetName
from ova.report.figures.figure import Figure
from ova.report.figures.reliability import COLUMNS, draw
from ova.report.select import points
from ova.training.run_folder import Run


def rows(runs: Sequence[Run]) -> list[Row]:
    """The bins of all types of shift together at the largest severity, with the ECE read off them."""
    bins = [
        row
        for row in points(runs, "reliability")
        if row["count"] and SetName(row["dataset"]).mean and SetName(row["dataset"]).severity
    ]
    top = max((SetName(row["dataset"]).severity for row in bins), default=0)
    bins = [row for row in bins if SetName(row["dataset"]).severity == top]
    sums: dict[tuple[str, int], list[float]] = {}
    for row in bins:
        gap = row["count"] * abs(row["accuracy"] - row["confidence"])
        total = sums.setdefault((row["label"], row["seed"]), [0.0, 0.0])
        total[0], total[1] = total[0] + gap, total[1] + row["count"]
    ece = {key: gap / count for key, (gap, count) in sums.items()}
    return [{k: row[k] for k in COLUMNS} | {"ece": ece[row["label"], row["seed"]]} for row in bins]


FIGURE = Figure(
    title="And under the strongest shift?",
    caption=(
        "The same for all types of shift together at the largest severity; the ECE is that of the "
        "pooled answers."
    ),
    needs="`reliability` curves of `shift/*/<severity>`",
    section="trust",
    rows=rows,
    draw=draw,
)
