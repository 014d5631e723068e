"""Accuracy for each type of shift and severity, as a heat map per formulation."""

from functools import partial

from ova.report.figures.figure import Figure
from ova.report.figures.heatmap_ece import draw, rows
from ova.report.figures.severity import NEEDS

FIGURE = Figure(
    title="Where its answers break",
    caption="Accuracy for each type of shift and severity, mean over seeds. Darker is worse.",
    needs=NEEDS,
    section="shift",
    rows=partial(rows, "accuracy"),
    draw=partial(draw, "accuracy"),
)
