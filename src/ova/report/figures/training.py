"""Training curves: loss and accuracy per epoch, on the training and the validation set."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import distinct
from ova.training.run_folder import Run

SETS = {"training": "", "validation": "validation_"}
MOST = 200  # epochs drawn; of longer runs every k-th, and the last


def rows(runs: Sequence[Run]) -> list[Row]:
    """Loss and accuracy of each epoch and set."""
    return [
        {"label": run.label, "seed": run.seed, "epoch": entry["epoch"]}
        | {"set": name, "metric": metric, "value": entry[prefix + metric]}
        for run in runs
        for entry in thinned(run.log)
        for name, prefix in SETS.items()
        for metric in ("loss", "accuracy")
        if isinstance(entry.get(prefix + metric), int | float)
    ]


def thinned(log: Sequence[Row]) -> list[Row]:
    """Every k-th epoch and the last."""
    step = -(-len(log) // MOST) or 1
    return [entry for i, entry in enumerate(log) if i % step == 0 or i == len(log) - 1]


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """Means over seeds; whole lines are validation, dotted ones training."""
    charts = [panel(m, labels) for m in distinct(rows, "metric")]
    chart = alt.concat(*charts, columns=2, spacing=30)
    return theme.finish(chart, rows, cell=340, extra=64)


def panel(metric: str, labels: Sequence[str]) -> theme.Chart:
    """The lines of one metric."""
    dotted = alt.Scale(domain=list(SETS), range=[[2, 3], [1, 0]])
    line = (
        alt.Chart()
        .transform_filter(theme.SHOWN)
        .transform_filter(alt.datum.metric == metric)
        .transform_aggregate(mean="mean(value)", groupby=["label", "set", "epoch"])
        .mark_line(strokeWidth=1.6)
    )
    return line.encode(
        x=alt.X("epoch:Q", title="epoch", axis=alt.Axis(tickMinStep=1)),
        y=alt.Y("mean:Q", title=metric, scale=alt.Scale(zero=False)),
        color=theme.colour(labels),
        strokeDash=alt.StrokeDash("set:N", scale=dotted, title=None),
        tooltip=[theme.FORMULATION, alt.Tooltip("set:N")],
    ).properties(width=400, height=220)


FIGURE = Figure(
    title="Training",
    caption="Means over seeds. Whole lines: validation; dotted lines: training.",
    needs="`log.jsonl` of the runs",
    section="training",
    rows=rows,
    draw=draw,
)
