"""Confidence over the plane of the toy problem (the paper's F1)."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import first_curves
from ova.training.run_folder import Run

MOST = 100  # cells along a side
OVERLAP = 1.5  # cells overlap by a pixel or so, so that no seams shine through


def rows(runs: Sequence[Run]) -> list[Row]:
    """The grid of each label's first seed, thinned to a picture of at most 100 x 100 cells."""
    return [
        cell
        for run, columns in first_curves(runs, "landscape")
        for cell in cells(columns, {"label": run.label, "seed": run.seed})
    ]


def cells(columns: dict[str, list[float]], head: Row) -> list[Row]:
    """Every k-th point of the grid; three places are more than a colour shows."""
    keep_x, keep_y = every(columns["x"]), every(columns["y"])
    grid = zip(columns["x"], columns["y"], columns["confidence"], strict=True)
    return [
        head | {"x": x, "y": y, "confidence": round(c, 3)}
        for x, y, c in grid
        if x in keep_x and y in keep_y and c is not None
    ]


def every(axis: Sequence[float]) -> set[float]:
    """At most MOST evenly spaced values of an axis."""
    values = sorted(set(axis))
    return set(values[:: -(-len(values) // MOST) or 1])


def spacing(axis: Sequence[float]) -> float:
    """The side of a cell."""
    values = sorted(set(axis))
    return (values[-1] - values[0]) / (len(values) - 1) if len(values) > 1 else 1.0


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One map per label; where the confidence is below the slider's threshold it is grey."""
    shown = theme.present(rows, labels)
    facet, (columns, side) = alt.Facet("label:N", title=None, sort=shown), theme.tiles(len(shown))
    cells = (
        alt.Chart(theme.LATER)
        .mark_rect(strokeWidth=0, clip=True)
        .encode(
            color=alt.condition("datum.confidence >= threshold", SHADE, alt.value(alt.expr(GREY))),
            tooltip=[
                theme.FORMULATION,
                alt.Tooltip("x:Q"),
                alt.Tooltip("y:Q"),
                alt.Tooltip("confidence:Q", format=".3f"),
            ],
        )
    )
    for name in ("x", "y"):
        cells = along(cells, name, [row[name] for row in rows])
    chart = cells.properties(width=side, height=side).facet(facet, columns=columns)
    chart = chart.transform_filter(theme.LABEL_SHOWN)  # before the facets, so that none is empty
    page: dict[str, Any] = {
        "cell": 180,
        "extra": 30,
        "margin": 40,
        "square": True,
        "renderer": "canvas",
    }
    return theme.finish(chart, rows, linked=True, **page, children=theme.children(rows, labels))


SHADE = alt.Color(
    "confidence:Q",
    scale=alt.Scale(scheme="viridis", domain=[0, 1]),
    legend=alt.Legend(title="confidence", gradientLength=160),
)
GREY = "'hsl(215, 5%, ' + round(34 + 40 * datum.confidence) + '%)'"


def along(chart: alt.Chart, name: str, axis: Sequence[float]) -> theme.Chart:
    """Place the cells along one axis."""
    low, high, side = min(axis), max(axis), spacing(axis)
    chart = chart.transform_calculate(**{f"{name}2": f"datum.{name} + {OVERLAP * side}"})
    scale = alt.Scale(domain=[low, high + side], nice=False)
    options: dict[str, Any] = {
        "title": None,
        "axis": alt.Axis(grid=False, tickCount=4),
        "scale": scale,
    }
    if name == "x":
        return chart.encode(x=alt.X("x:Q", **options), x2="x2:Q")
    return chart.encode(y=alt.Y("y:Q", **options), y2="y2:Q")


FIGURE = Figure(
    title="Confidence over the plane",
    caption=(
        "Bright is confident; what lies below the threshold is grey. A classifier that knows what it "
        "does not know is dark far away from its training data."
    ),
    needs="a `landscape` curve, which only problems in the plane have",
    section="space",
    rows=rows,
    draw=draw,
)
