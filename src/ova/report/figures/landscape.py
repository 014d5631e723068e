"""Confidence over the plane of the toy problem (the paper's F1)."""

from collections.abc import Sequence

import altair as alt

from ova.report.runs import Run
from ova.report.select import curves
from ova.report.theme import LABEL_SHOWN, LATER, PARAMS, THRESHOLD, Row, children, finish, present

MOST = 100  # cells along a side
OVERLAP = 1.06  # neighbouring cells overlap a little, so that no seams shine through


def rows(runs: Sequence[Run]) -> list[Row]:
    """The grid of each label's first seed, thinned to a picture of at most 100 x 100 cells."""
    found: dict[str, list[Row]] = {}
    for run in runs:
        for curve in curves(run, "landscape"):
            if run.label not in found:
                found[run.label] = cells(curve["columns"], {"label": run.label, "seed": run.seed})
    return [row for group in found.values() for row in group]


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


def draw(rows: Sequence[Row], labels: Sequence[str]) -> alt.FacetChart:
    """One map per label; where the confidence is below the slider's threshold it is grey."""
    width = OVERLAP * spacing([row["x"] for row in rows])
    height = OVERLAP * spacing([row["y"] for row in rows])
    base = alt.Chart().transform_filter(LABEL_SHOWN)
    base = base.transform_calculate(right=f"datum.x + {width}", top=f"datum.y + {height}")
    legend = alt.Legend(title="confidence", gradientLength=160)
    answered = base.transform_filter("datum.confidence >= threshold")
    refused = base.transform_filter("datum.confidence < threshold")
    answered = cell(answered).encode(color=shade("viridis", [0, 1], legend))
    refused = cell(refused).encode(color=shade("greys", [1.6, -0.4], None))
    facet = alt.Facet("label:N", title=None, sort=present(rows, labels))
    chart = (
        alt.layer(answered, refused, data=LATER)
        .resolve_scale(color="independent")
        .properties(width=210, height=210)
        .facet(facet, columns=4)
        .add_params(*PARAMS, THRESHOLD)
    )
    page = {"cell": 190, "extra": 22, "margin": 40, "square": True, "renderer": "canvas"}
    return finish(chart, rows, **page, children=children(rows, labels))


def cell(base: alt.Chart) -> alt.Chart:
    """A cell of the map with its exact value."""
    axis = alt.Axis(grid=False)
    return base.mark_rect(strokeWidth=0).encode(
        x=alt.X("x:Q", title=None, axis=axis, scale=alt.Scale(nice=False, zero=False)),
        x2="right:Q",
        y=alt.Y("y:Q", title=None, axis=axis, scale=alt.Scale(nice=False, zero=False)),
        y2="top:Q",
        tooltip=[
            alt.Tooltip("label:N", title="formulation"),
            alt.Tooltip("x:Q"),
            alt.Tooltip("y:Q"),
            alt.Tooltip("confidence:Q", format=".3f"),
        ],
    )


def shade(scheme: str, domain: list[float], legend: alt.Legend | None) -> alt.Color:
    """Confidence as a shade."""
    return alt.Color("confidence:Q", scale=alt.Scale(scheme=scheme, domain=domain), legend=legend)  # type: ignore[arg-type]
