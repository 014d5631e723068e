"""ECE, or another metric, for each type of shift and severity, as a heat map per formulation."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.figures.severity import NAMES, NEEDS
from ova.report.select import shifts
from ova.training.run_folder import Run

SCHEME: dict[str, Any] = {"accuracy": "viridis", "ece": "magma"}


def rows(metric: str, runs: Sequence[Run]) -> list[Row]:
    """The metric of every type and severity."""
    return [
        {k: v for k, v in r.items() if k != "metric"} for r in shifts(runs, metric) if r["severity"]
    ]


def draw(metric: str, rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One map per label: types down, severities across, the mean over seeds in each cell."""
    high = max(row["value"] for row in rows)
    base = (
        alt.Chart()
        .transform_aggregate(mean="mean(value)", groupby=["label", "type", "severity"])
        .encode(
            x=alt.X("severity:O", title="severity", axis=alt.Axis(labelAngle=0, grid=False)),
            y=alt.Y("type:N", title=None, axis=alt.Axis(grid=False, labelLimit=120)),
            tooltip=[
                theme.FORMULATION,
                alt.Tooltip("type:N"),
                alt.Tooltip("severity:O"),
                theme.exact("mean", NAMES[metric]),
            ],
        )
    )
    scale = alt.Scale(scheme=SCHEME[metric], domain=[0, 1 if metric == "accuracy" else high])
    legend = alt.Legend(title=NAMES[metric], gradientLength=160)
    cells = base.mark_rect().encode(color=alt.Color("mean:Q", scale=scale, legend=legend))
    middle = 0.6 if metric == "accuracy" else 0.6 * high
    text = base.mark_text(fontSize=9.5).encode(
        text=alt.Text("mean:Q", format=".2f"),
        color=alt.condition(f"datum.mean > {middle}", alt.value("#111"), alt.value("#fff")),
    )
    height = 17 * len({row["type"] for row in rows})
    chart = (
        alt.layer(cells, text, data=theme.LATER)
        .properties(width=150, height=height)
        .facet(alt.Facet("label:N", title=None, sort=theme.present(rows, labels)), columns=4)
        .transform_filter(theme.SHOWN)
    )
    return theme.finish(
        chart, rows, cell=150, extra=30, margin=120, children=theme.children(rows, labels)
    )


FIGURE = Figure(
    title="Where its confidence breaks",
    caption="ECE for each type of shift and severity, mean over seeds. Brighter is worse.",
    needs=NEEDS,
    section="shift",
    rows=partial(rows, "ece"),
    draw=partial(draw, "ece"),
)
