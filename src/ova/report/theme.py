"""One look for every chart: colours that stay with their formulation, quiet axes, exact tooltips."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from ova.files import Row
from ova.metrics.choice import PLAIN

Chart = Any  # Altair's own types do not survive its own methods

# Okabe and Ito's palette, without black and yellow, which vanish on dark and on light paper.
COLOURS = {
    "softmax": "#0072B2",
    "dm": "#E69F00",
    "ova": "#009E73",
    "ova-dm": "#CC79A7",
    "ova-ball": "#D55E00",
}
SPARE = ("#56B4E9", "#8C6BB1", "#4D9221", "#C51B7D", "#737373", "#35978F", "#BF5B17", "#332288",
         "#882255", "#999933", "#B8860B")  # fmt: skip
RIGHT, WRONG, OUTSIDE = "#8A8F98", "#D55E00", "#56B4E9"
# A second channel beside colour: broken lines are distributions (they sum to one).
BROKEN = ("softmax", "dm")
FONT = "-apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'Liberation Sans', Arial, sans-serif"
QUIET = "#8A8F98"

# What the page sets. The threshold starts outside the axis, so that a printed figure has no rule.
FILTERS = [alt.param(name=name, value=[]).param for name in ("hidden_labels", "hidden_seeds")]
THRESHOLD = alt.param(name="threshold", value=-1).param
SCORE = alt.param(name="score", value=PLAIN).param
BY_SCORE = "score == 'chosen' ? datum.chosen : score == 'best' ? datum.best : datum.score == score"
SHOWN = "indexof(hidden_labels, datum.label) < 0 && indexof(hidden_seeds, datum.seed) < 0"
LABEL_SHOWN = "indexof(hidden_labels, datum.label) < 0"


def colours(labels: Iterable[str]) -> dict[str, str]:
    """The colour of each label: fixed for known formulations, in order of appearance for others.

    >>> colours(["ova", "mine"])
    {'ova': '#009E73', 'mine': '#56B4E9'}
    """
    spare = iter(SPARE * 20)
    return {name: COLOURS[name] if name in COLOURS else next(spare, QUIET) for name in labels}


def dashes(labels: Iterable[str]) -> dict[str, list[int]]:
    """The stroke of each label: broken for softmax-type formulations, whole for one-vs-all."""
    return {name: [6, 3] if name.split(" ")[0].startswith(BROKEN) else [1, 0] for name in labels}


def present(rows: Iterable[Row], labels: Sequence[str]) -> list[str]:
    """The labels that have rows, in the order of the whole page."""
    found = {row["label"] for row in rows}
    return [label for label in labels if label in found]


def children(rows: Iterable[Row], labels: Sequence[str]) -> list[Row]:
    """Panels in the order in which they stand, for the page to lay out and to hide."""
    return [{"label": label} for label in present(rows, labels)]


def rule() -> Chart:
    """The slider's place on a confidence axis."""
    at = alt.Chart(values([{"at": 0}])).transform_calculate(at="threshold")
    return at.mark_rule(clip=True, color=QUIET, strokeWidth=1.5, strokeDash=[3, 3]).encode(x="at:Q")


def colour(labels: Sequence[str], symbol: str = "stroke") -> alt.Color:
    """Colour by label, the same in every chart."""
    table = colours(labels)
    scale = alt.Scale(domain=list(table), range=list(table.values()))
    legend = alt.Legend(symbolType=symbol, symbolOpacity=1, symbolSize=140)
    return alt.Color("label:N", scale=scale, title=None, legend=legend)


def dash(labels: Sequence[str]) -> alt.StrokeDash:
    """Stroke by label, the same in every chart."""
    table = dashes(labels)
    scale = alt.Scale(domain=list(table), range=list(table.values()))
    return alt.StrokeDash("label:N", scale=scale, title=None)


def share(name: str, title: str) -> dict[str, Any]:
    """Axis and scale of a quantity between 0 and 1."""
    return {"shorthand": name, "title": title, "scale": alt.Scale(domain=[0, 1])}


def diagonal() -> Chart:
    """A line from corner to corner, for the chart to place: of honest confidence, or of chance."""
    return alt.Chart(values([{"a": 0}, {"a": 1}])).mark_line(color=QUIET, strokeWidth=1)


# The axis of charts whose bars are bins of the confidence.
CONFIDENCE = alt.X(
    "lower:Q",
    bin="binned",
    title="confidence",
    axis=alt.Axis(grid=True),
    scale=alt.Scale(domain=[0, 1]),
)
# Lines of tooltips that many charts have.
BIN = [
    alt.Tooltip("lower:Q", title="confidence from", format=".3f"),
    alt.Tooltip("upper:Q", title="to", format=".3f"),
]
FORMULATION = alt.Tooltip("label:N", title="formulation")
SEED = alt.Tooltip("seed:N")


def exact(name: str, title: str) -> alt.Tooltip:
    """A number to four digits as a line of a tooltip."""
    return alt.Tooltip(f"{name}:Q", title=title, format=".4f")


SEEDS = [exact("low", "lowest seed"), exact("high", "highest seed")]


def seed_line(chart: Chart, labels: Sequence[str], x: alt.X, y: alt.Y, **mark: Any) -> Chart:
    """A line per label and seed, drawn in the order of x."""
    return chart.mark_line(strokeWidth=1.6, **mark).encode(
        x=x,
        y=y,
        detail="seed:N",
        order=x.shorthand,
        color=colour(labels),
        strokeDash=dash(labels),
        tooltip=[FORMULATION, SEED],
    )


def working_point(chart: Chart) -> Chart:
    """Dots where the slider stands; the rows have a threshold."""
    here = chart.transform_filter("abs(datum.threshold - threshold) < 1e-9")
    return here.mark_point(filled=True, size=60, opacity=1, stroke="white", strokeWidth=1)


LATER = alt.NamedData("rows")  # stands where `finish` puts the data


def values(rows: Sequence[Row]) -> alt.InlineData:
    """Rows as the data of a chart; equal rows are stored once in the page."""
    return alt.InlineData(values=list(rows))


def finish(
    chart: Any, rows: Sequence[Row], *, linked: bool = False, scored: bool = False, **page: Any
) -> Any:
    """Give a chart its data and its look, and tell the page what it needs to know to fit it in.

    `linked` charts follow the slider, `scored` ones the choice of a score. `cell` is the least width of a panel, `extra` what lies
    beside each, `margin` beside them all. Attributes are set in place: Altair's own methods would
    copy the whole chart each time.
    """
    chart.params = [*FILTERS, *([THRESHOLD] if linked else []), *([SCORE] if scored else [])]
    chart.config = CONFIG
    chart.usermeta = page
    chart.data = values(rows)
    return chart


CONFIG = {
    "font": FONT,
    "background": "transparent",
    "view": {"stroke": None},
    "axis": {
        "grid": True,
        "gridColor": QUIET,
        "gridOpacity": 0.18,
        "domainColor": QUIET,
        "domainOpacity": 0.5,
        "ticks": False,
        "labelFlush": False,
        "labelOverlap": "greedy",
        "labelPadding": 6,
        "titlePadding": 8,
        "labelFontSize": 11,
        "titleFontSize": 11.5,
        "titleFontWeight": "normal",
        "labelColor": "#5B616B",
        "titleColor": "#5B616B",
    },
    "legend": {
        "orient": "top",
        "direction": "horizontal",
        "labelFontSize": 12,
        "symbolStrokeWidth": 3,
        "labelColor": "#3A3F47",
        "titleColor": "#5B616B",
        "titleFontWeight": "normal",
        "offset": 6,
    },
    "title": {
        "fontSize": 12.5,
        "fontWeight": 600,
        "anchor": "start",
        "color": "#23272E",
        "subtitleColor": "#5B616B",
    },
    "header": {
        "labelFontSize": 12.5,
        "labelFontWeight": 600,
        "labelColor": "#23272E",
        "labelAnchor": "start",
    },
    "line": {"strokeWidth": 2},
}


def tiles(count: int) -> tuple[int, int]:
    """How many square panels stand in a row, and how wide each is; no row is left nearly empty.

    >>> tiles(4), tiles(5), tiles(6)
    ((4, 210), (5, 168), (3, 210))
    """
    rows = -(-count // 5) or 1
    columns = -(-count // rows) or 1
    return columns, min(210, 840 // columns)
