"""Accuracy and ECE under shift, one box per severity and formulation (the paper's F2 and F3)."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import distinct, shifts
from ova.training.run_folder import Run

NEEDS = "accuracy and ECE of `shift/<type>/<severity>` sets"
NAMES = {"accuracy": "accuracy", "ece": "ECE"}
AXIS = alt.Axis(labelAngle=0, labelExpr="datum.value == 0 ? 'test' : datum.label")


def rows(runs: Sequence[Run]) -> list[Row]:
    """Accuracy and ECE of every type and severity; the plain test set is severity 0."""
    return [row for metric in NAMES for row in shifts(runs, metric)]


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """Boxes side by side: median, quartiles and extremes over the types of shift and seeds."""
    shown = theme.present(rows, labels)
    charts = [panel(m, labels, shown) for m in distinct(rows, "metric")]
    chart = alt.concat(*charts, columns=2, spacing=30)
    return theme.finish(chart, rows, cell=340, extra=64)


def panel(metric: str, labels: Sequence[str], shown: Sequence[str]) -> theme.Chart:
    """The boxes of one metric."""
    box = alt.Chart().transform_filter(theme.SHOWN).transform_filter(alt.datum.metric == metric)
    box = box.mark_boxplot(
        extent="min-max", size=9, median={"color": "white"}, rule={"color": theme.QUIET}
    )
    return box.encode(
        x=alt.X("severity:O", title="severity of the shift", axis=AXIS),
        xOffset=alt.XOffset("label:N", sort=list(shown)),
        y=alt.Y("value:Q", title=NAMES[metric], scale=alt.Scale(zero=metric == "ece")),
        color=theme.colour(labels, "square"),
    ).properties(width=400, height=260)


FIGURE = Figure(
    title="As the inputs drift",
    caption=(
        "Each box holds all types of shift at one severity: median, quartiles, extremes. High "
        "accuracy is good, low ECE is good."
    ),
    needs=NEEDS,
    section="shift",
    rows=rows,
    draw=draw,
)
