"""Accuracy of the answered against the confidence threshold, with the share kept (F4 and S5)."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import distinct, unfold
from ova.report.thresholds import table
from ova.training.run_folder import Run


def rows(runs: Sequence[Run]) -> list[Row]:
    """One row per run, set and threshold: accuracy of the answered, share kept, OOD let through."""
    live = table(runs)
    return [
        {"label": run["label"], "seed": run["seed"], "dataset": dataset, "threshold": t} | values
        for run in live["runs"]
        for dataset, columns in sets(run).items()
        for t, values in zip(live["grid"], unfold(columns), strict=True)
    ]


def sets(run: Row) -> dict[str, dict[str, list[Any]]]:
    """The columns for the test set alone and for each mixture."""
    alone = {"accuracy": run["accuracy"], "answered": run["answered"]}
    return {"test": alone} | {f"test + {name}": mix for name, mix in run["mixed"].items()}


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One column per set: the test set alone, and mixed with each OOD set, whose answers are wrong."""
    charts = [column(labels, name, lowest(rows, name)) for name in distinct(rows, "dataset")]
    chart = alt.concat(*charts, columns=3, spacing=26)
    return theme.finish(chart, rows, linked=True, cell=250, extra=68, columns=3)


def lowest(rows: Sequence[Row], name: str) -> float:
    """Where the accuracy axis begins: never above 0.9, lest nothing look like much."""
    known = [
        row["accuracy"] for row in rows if row["dataset"] == name and row["accuracy"] is not None
    ]
    return float(min([0.9, *known]))


def column(labels: Sequence[str], name: str, low: float) -> theme.Chart:
    """Accuracy above, share kept below, for one set."""
    top = panel(name, labels, ("accuracy", "accuracy of the answered"), low).properties(height=220)
    below = panel(name, labels, ("answered", "share answered"), 0).properties(height=110)
    return alt.vconcat(top, below, spacing=10, title=name)


def panel(name: str, labels: Sequence[str], y: tuple[str, str], low: float) -> theme.Chart:
    """Mean over seeds as a line, the range of seeds as a band, the slider as a rule with dots."""
    base = (
        alt.Chart()
        .transform_filter(theme.SHOWN)
        .transform_filter(alt.datum.dataset == name)
        .transform_filter(f"isValid(datum.{y[0]})")
        .transform_aggregate(
            mean=f"mean({y[0]})",
            low=f"min({y[0]})",
            high=f"max({y[0]})",
            groupby=["label", "threshold"],
        )
        .encode(
            x=alt.X("threshold:Q", title="confidence threshold", scale=alt.Scale(domain=[0, 1])),
            color=theme.colour(labels),
        )
    )
    scale = alt.Scale(domain=[low, 1], nice=True)
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("low:Q", title=y[1], scale=scale), y2="high:Q"
    )
    line = base.mark_line().encode(
        y=alt.Y("mean:Q", title=y[1], scale=scale), strokeDash=theme.dash(labels)
    )
    tooltip = [
        theme.FORMULATION,
        alt.Tooltip("threshold:Q"),
        theme.exact("mean", y[1]),
        *theme.SEEDS,
    ]
    dots = theme.working_point(base).encode(
        y=alt.Y("mean:Q", title=y[1], scale=scale), tooltip=tooltip
    )
    return alt.layer(band, line, theme.rule(), dots).properties(width=250)


FIGURE = Figure(
    title="Accuracy of the answered, at every threshold",
    caption=(
        "The model answers only when its confidence reaches the threshold. Mixed with unknown "
        "inputs every answer to one of them is wrong. Bands span the seeds."
    ),
    needs="`accuracy_confidence` curves of the test set",
    section="threshold",
    rows=rows,
    draw=draw,
)
