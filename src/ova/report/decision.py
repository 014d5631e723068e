"""A figure of one model: where right, wrong and unknown rows lie on the scale that decides."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import distinct
from ova.training.run_folder import Run

FIRST = {"right": theme.RIGHT, "wrong": theme.WRONG}
MORE = (theme.OUTSIDE, *theme.SPARE[1:])  # of the unknown sets


def rows(_: Sequence[Run]) -> list[Row]:
    """None: the bins are of one model, and brought by its page."""
    return []


def draw(rows: Sequence[Row], _: Sequence[str]) -> theme.Chart:
    """An outline per set over the scale; each set's bars sum to one."""
    sets = distinct(rows, "set")
    others = dict(zip((name for name in sets if name not in FIRST), MORE, strict=False))
    paint = {name: (FIRST | others).get(name, theme.QUIET) for name in sets}
    scale = alt.Scale(domain=list(paint), range=list(paint.values()))
    what = alt.Color("set:N", title=None, scale=scale, legend=alt.Legend(symbolOpacity=1))
    low, high = min(row["lower"] for row in rows), max(row["upper"] for row in rows)
    x = alt.X(
        "lower:Q", title=str(rows[0]["scale"]), scale=alt.Scale(domain=[low, high], nice=False)
    )
    y = alt.Y("share:Q", title="share of the set", stack=None, axis=alt.Axis(format="%"))
    tooltip = [
        alt.Tooltip("set:N"),
        theme.exact("lower", "from"),
        theme.exact("upper", "to"),
        alt.Tooltip("count:Q", title="rows", format=","),
        theme.exact("share", "share of the set"),
    ]
    base = alt.Chart()
    bars = base.mark_bar(opacity=0.4, strokeWidth=0).encode(
        x=x, x2="upper:Q", y=y, color=what, tooltip=tooltip
    )
    line = base.mark_line(interpolate="step-after", strokeWidth=1.5).encode(x=x, y=y, color=what)
    chart = alt.layer(bars, line, theme.rule()).properties(width=640, height=220)
    return theme.finish(chart, rows, linked=True, cell=300, extra=70)


FIGURE = Figure(
    title="What the threshold has to tell apart",
    caption=(
        "Where right answers, wrong answers and rows of none of the classes lie on the scale that decides, "
        "each set summing to one. What is left of the rule is refused."
    ),
    needs="a model of `ova train`",
    section="threshold",
    rows=rows,
    draw=draw,
)
