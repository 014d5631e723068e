"""Confidence of right answers, wrong answers and unknown inputs (the paper's S6 and S7)."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.predictions.sets import SetName
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import distinct, points
from ova.training.run_folder import Run

SETS = {"right": theme.RIGHT, "wrong": theme.WRONG, "outside": theme.OUTSIDE}


def rows(runs: Sequence[Run]) -> list[Row]:
    """Counts per bin of each of the three sets, for each OOD set."""
    keys = ("label", "seed", "dataset", "lower", "upper", *SETS)
    return [{key: row.get(key) for key in keys} for row in points(runs, "histogram")]


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One panel per label and OOD set; each set's bars sum to one."""
    shown = theme.present(rows, labels)
    places = [(label, name) for name in distinct(rows, "dataset") for label in shown]
    sets = [name for name in SETS if any(row[name] for row in rows)]
    charts = [panel(label, name, sets) for label, name in places]
    chart = alt.concat(*charts, columns=4, spacing=24)
    panels = [{"label": label} for label, _ in places]
    return theme.finish(chart, rows, linked=True, cell=170, extra=68, limit=320, children=panels)


def panel(label: str, name: str, sets: Sequence[str]) -> theme.Chart:
    """An outline over the confidence axis for each set that has a row."""
    base = (
        alt.Chart()
        .transform_filter(theme.SHOWN)
        .transform_filter((alt.datum.label == label) & (alt.datum.dataset == name))
        .transform_fold(list(sets), as_=["set", "count"])
        .transform_aggregate(count="sum(count)", groupby=["set", "lower", "upper"])
        .transform_joinaggregate(all="sum(count)", groupby=["set"])
        .transform_calculate(share="datum.all ? datum.count / datum.all : 0")
    )
    scale = alt.Scale(domain=list(sets), range=[SETS[each] for each in sets])
    names = alt.Legend(
        labelExpr="datum.label == 'outside' ? 'unknown' : datum.label", symbolOpacity=1
    )
    what = alt.Color("set:N", title=None, scale=scale, sort=list(sets), legend=names)
    bars = base.mark_bar(opacity=0.45, strokeWidth=0).encode(
        x=theme.CONFIDENCE,
        x2="upper:Q",
        y=alt.Y(
            "share:Q", title="share of the set", stack=None, axis=alt.Axis(format="%", tickCount=4)
        ),
        color=what,
        tooltip=[
            alt.Tooltip("set:N"),
            *theme.BIN,
            alt.Tooltip("count:Q", title="inputs", format=","),
            theme.exact("share", "share of the set"),
        ],
    )
    outline = base.mark_line(interpolate="step-after", strokeWidth=1.5).encode(
        x="lower:Q", y=alt.Y("share:Q", stack=None), color=what
    )
    title = f"{label} · {SetName(name).short}"
    return alt.layer(bars, outline, theme.rule()).properties(width=200, height=130, title=title)


FIGURE = Figure(
    title="What a threshold has to tell apart",
    caption=(
        "Confidence of right answers, wrong answers and unknown inputs, each set summing to one. "
        "The less they overlap, the better a threshold works."
    ),
    needs="`histogram` curves, which need an OOD set",
    section="threshold",
    rows=rows,
    draw=draw,
)
