"""Mean accuracy and ECE per severity over all types of shift (the paper's S4)."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.figures.severity import AXIS, NAMES, NEEDS
from ova.report.select import distinct, over_types, shifts
from ova.training.run_folder import Run


def rows(runs: Sequence[Run]) -> list[Row]:
    """Per run, metric and severity: the mean over the types."""
    return [row for metric in NAMES for row in over_types(shifts(runs, metric), metric)]


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """Lines of means over seeds, with the range of the seeds as a whisker."""
    charts = [panel(m, f"mean {NAMES[m]}", labels) for m in distinct(rows, "metric")]
    chart = alt.concat(*charts, columns=2, spacing=30)
    return theme.finish(chart, rows, cell=340, extra=64)


def panel(metric: str, title: str, labels: Sequence[str]) -> theme.Chart:
    """The lines of one metric."""
    base = (
        alt.Chart()
        .transform_filter(theme.SHOWN)
        .transform_filter(alt.datum.metric == metric)
        .transform_aggregate(
            mean="mean(value)", low="min(value)", high="max(value)", groupby=["label", "severity"]
        )
        .encode(
            x=alt.X("severity:O", title="severity of the shift", axis=AXIS),
            color=theme.colour(labels),
        )
    )
    y = alt.Y("mean:Q", title=title, scale=alt.Scale(zero=metric != "accuracy"))
    tooltip = [
        theme.FORMULATION,
        alt.Tooltip("severity:O"),
        theme.exact("mean", title),
        *theme.SEEDS,
    ]
    line = base.mark_line().encode(y=y, strokeDash=theme.dash(labels))
    dots = base.mark_point(filled=True, size=45, opacity=1).encode(y=y, tooltip=tooltip)
    whiskers = base.mark_rule().encode(y=alt.Y("low:Q", title=title), y2="high:Q")
    return alt.layer(whiskers, line, dots).properties(width=400, height=240)


FIGURE = Figure(
    title="The same, on average",
    caption="Mean over all types of shift; whiskers span the seeds.",
    needs=NEEDS,
    section="shift",
    rows=rows,
    draw=draw,
)
