"""Reliability diagrams with the histogram beneath (the paper's S2)."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from ova.files import Row
from ova.predictions.sets import TEST
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import points, values
from ova.training.run_folder import Run

COLUMNS = ("label", "seed", "lower", "upper", "count", "confidence", "accuracy")


def rows(runs: Sequence[Run]) -> list[Row]:
    """The bins of the test set's reliability curves, with each run's ECE."""
    ece = {(row["label"], row["seed"]): row["value"] for row in values(runs, "ece", "test")}
    bins = [row for row in points(runs, "reliability") if row["dataset"] == TEST]
    return [
        {key: row.get(key) for key in COLUMNS} | {"ece": ece.get((row["label"], row["seed"]))}
        for row in bins
    ]


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One diagram per label: accuracy against confidence, the gap, and where the answers are."""
    paint = theme.colours(labels)
    labels = theme.present(rows, labels)
    errors = {label: ece_of(rows, label) for label in labels}
    charts = [one(label, paint[label], errors[label]) for label in labels]
    chart = alt.concat(*charts, columns=4, spacing=26)
    panels = [{"label": label, "ece": errors[label]} for label in labels]
    return theme.finish(chart, rows, linked=True, cell=170, extra=68, limit=320, children=panels)


def ece_of(rows: Sequence[Row], label: str) -> dict[str, float]:
    """The ECE of each seed of a label."""
    return {str(r["seed"]): r["ece"] for r in rows if r["label"] == label and r["ece"] is not None}


def one(label: str, paint: str, ece: Mapping[str, float]) -> theme.Chart:
    """The diagram of one label, with its ECE in the title."""
    base = pooled(label)
    title = f"{label} · ECE {sum(ece.values()) / len(ece):.3f}" if ece else label
    bare = alt.Axis(labels=False, grid=True)
    x = alt.X("lower:Q", bin="binned", title=None, scale=alt.Scale(domain=[0, 1]), axis=bare)
    y = alt.Y("accuracy:Q", title="accuracy", scale=alt.Scale(domain=[0, 1]))
    bars = base.mark_bar(color=paint, opacity=0.75, stroke=paint, strokeWidth=0.5)
    bars = bars.encode(x=x, x2="upper:Q", y=y, tooltip=TOOLTIP)
    gaps = base.mark_bar(filled=False, stroke=theme.QUIET, strokeDash=[3, 2], strokeWidth=1)
    gaps = gaps.encode(x=x, x2="upper:Q", y="accuracy:Q", y2="confidence:Q", tooltip=TOOLTIP)
    ideal = theme.diagonal().encode(x=alt.X("a:Q", title=None), y=alt.Y("a:Q", title="accuracy"))
    top = alt.layer(bars, gaps, ideal, theme.rule()).properties(width=190, height=190)
    low = base.mark_bar(color=paint, opacity=0.5).encode(
        x=theme.CONFIDENCE,
        x2="upper:Q",
        y=alt.Y("share:Q", title="share", axis=alt.Axis(format="%", tickCount=2)),
        tooltip=TOOLTIP,
    )
    below = alt.layer(low, theme.rule()).properties(width=190, height=56)
    return alt.vconcat(top, below, spacing=6, title=title)


def pooled(label: str) -> theme.Chart:
    """Bins of all shown seeds together, weighted by their counts."""
    return (
        alt.Chart()
        .transform_filter(theme.SHOWN)
        .transform_filter(alt.datum.label == label)
        .transform_calculate(
            hits="datum.count * datum.accuracy", sum="datum.count * datum.confidence"
        )
        .transform_aggregate(
            count="sum(count)", hits="sum(hits)", sum="sum(sum)", groupby=["lower", "upper"]
        )
        .transform_joinaggregate(all="sum(count)")
        .transform_filter("datum.count > 0")
        .transform_calculate(
            accuracy="datum.hits / datum.count",
            confidence="datum.sum / datum.count",
            share="datum.count / datum.all",
        )
    )


TOOLTIP: list[Any] = [
    *theme.BIN,
    theme.exact("confidence", "mean confidence"),
    alt.Tooltip("accuracy:Q", format=".4f"),
    alt.Tooltip("count:Q", title="answers", format=","),
]


FIGURE = Figure(
    title="Does 80 % mean 80 %?",
    caption=(
        "Bars on the diagonal are honest. Below it the model claims more than it keeps, above it "
        "less; the broken outline is the gap. Beneath: how many answers have that confidence."
    ),
    needs="a `reliability` curve of the test set",
    section="trust",
    rows=rows,
    draw=draw,
)
