"""Risk against coverage: the errors among the most confident answers."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.select import curves, unfold
from ova.report.thinning import thinned
from ova.training.run_folder import Run

LEAST = 0.05


def rows(runs: Sequence[Run]) -> list[Row]:
    """Thinned curves of the test set, from LEAST coverage on: a handful of answers says nothing."""
    found: list[Row] = []
    for run in runs:
        for curve in curves(run, "risk_coverage"):
            if curve["dataset"] == "test":
                wide = [row for row in unfold(curve["columns"]) if row["coverage"] >= LEAST]
                columns = {k: [row[k] for row in wide] for k in ("coverage", "risk")}
                thin = unfold(thinned(columns, "coverage", "risk"))
                found += [{"label": run.label, "seed": run.seed} | point for point in thin]
    return found


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One line per seed; lower is better everywhere."""
    top = max(0.01, *(row["risk"] for row in rows))
    axis, scale = alt.Axis(tickCount=10), alt.Scale(domain=[0, 1])
    x = alt.X("coverage:Q", title="share answered", axis=axis, scale=scale)
    y = alt.Y("risk:Q", title="errors among the answered", scale=alt.Scale(domain=[0, top]))
    line = theme.seed_line(
        alt.Chart(theme.LATER).transform_filter(theme.SHOWN), labels, x, y, opacity=0.85
    )
    return theme.finish(line.properties(width=640, height=260), rows, cell=300, extra=70)


FIGURE = Figure(
    title="Errors among the most confident",
    caption=(
        "Answer only the most confident share of the inputs: how many of the answers are wrong? "
        "Lower is better."
    ),
    needs="a `risk_coverage` curve of the test set",
    section="threshold",
    rows=rows,
    draw=draw,
)
