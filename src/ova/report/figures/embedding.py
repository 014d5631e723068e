"""Embeddings and class centres on the first two principal components (the paper's S1)."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import first_curves, unfold
from ova.training.run_folder import Run

MOST = 400  # points per formulation


def rows(runs: Sequence[Run]) -> list[Row]:
    """Points and centres of each label's first seed; of many points, every k-th."""
    found: list[Row] = []
    for run, columns in first_curves(runs, "embedding"):
        every = [row | {"class": str(row["label"])} for row in unfold(columns)]
        points = [row for row in every if row["kind"] == "point"]
        kept = points[:: -(-len(points) // MOST) or 1]
        kept += [row for row in every if row["kind"] == "centre"]
        found += [row | {"label": run.label, "seed": run.seed} for row in kept]
    return found


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One map per label: dots are examples in the colour of their class, diamonds are centres."""
    base = alt.Chart()
    x = alt.X("x:Q", title=None, scale=alt.Scale(zero=False))
    y = alt.Y("y:Q", title=None, scale=alt.Scale(zero=False))
    tooltip = [theme.FORMULATION, alt.Tooltip("class:N"), alt.Tooltip("kind:N")]
    paint = alt.Color("class:N", legend=None, scale=alt.Scale(scheme="tableau10"))
    dots = base.transform_filter("datum.kind == 'point'").mark_circle(size=10, opacity=0.5)
    dots = dots.encode(x=x, y=y, color=paint, tooltip=tooltip)
    centres = base.transform_filter("datum.kind == 'centre'")
    centres = centres.mark_point(
        shape="diamond", size=70, filled=True, stroke=theme.QUIET, strokeWidth=1.5
    )
    centres = centres.encode(x=x, y=y, color=paint, tooltip=tooltip, opacity=alt.value(1))
    shown = theme.present(rows, labels)
    columns, side = theme.tiles(len(shown))
    chart = (
        alt.layer(dots, centres, data=theme.LATER)
        .properties(width=side, height=side)
        .facet(alt.Facet("label:N", title=None, sort=shown), columns=columns)
        .resolve_scale(x="independent", y="independent")
        .transform_filter(theme.LABEL_SHOWN)
    )
    return theme.finish(
        chart, rows, cell=180, extra=46, square=True, children=theme.children(rows, labels)
    )


FIGURE = Figure(
    title="Embeddings and class centres",
    caption=(
        "Examples (dots, coloured by class) and the class centres of the last layer (diamonds) on "
        "two principal components."
    ),
    needs="an `embedding` curve, which only the toy problem writes",
    section="space",
    rows=rows,
    draw=draw,
)
