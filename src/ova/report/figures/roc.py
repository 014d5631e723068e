"""ROC curves of unknown inputs against known ones, with the slider's working point."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from ova.files import Row
from ova.metrics.choice import PLAIN
from ova.predictions.sets import SetName
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.scores import points
from ova.report.select import distinct
from ova.report.thresholds import table
from ova.training.run_folder import Run

PLAIN_ONLY = {"score": PLAIN, "chosen": False, "best": False}  # thresholds are of max p
X, Y = "unknown inputs let through", "known inputs answered"


def rows(runs: Sequence[Run]) -> list[Row]:
    """Thinned curves, and for each threshold the point at which the model would work."""
    found = points(runs, "roc", ("fpr", "tpr"))
    return found + [PLAIN_ONLY | row for row in working_points(runs)] if found else []


def working_points(runs: Sequence[Run]) -> list[Row]:
    """Per threshold: the share of the OOD set and of the test set that is answered."""
    live = table(runs)
    return [
        {"label": run["label"], "seed": run["seed"], "dataset": SetName.ood(name), "threshold": t}
        | {"fpr": mix["through"][i], "tpr": run["answered"][i]}
        for run in live["runs"]
        for name, mix in run["mixed"].items()
        for i, t in enumerate(live["grid"])
        if mix["through"][i] is not None
    ]


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One panel per OOD set; a known input is the positive class."""
    charts = [panel(labels, name) for name in distinct(rows, "dataset")]
    chart = alt.concat(*charts, columns=3, spacing=30)
    page: dict[str, Any] = {"cell": 250, "extra": 62, "columns": 3, "limit": 360}
    return theme.finish(chart, rows, linked=True, scored=True, **page)


def panel(labels: Sequence[str], name: str) -> theme.Chart:
    """The curves of every seed, chance as a diagonal, and a dot where the slider stands."""
    x, y = alt.X(**theme.share("fpr:Q", X)), alt.Y(**theme.share("tpr:Q", Y))
    mine = alt.Chart().transform_filter(theme.SHOWN).transform_filter(alt.datum.dataset == name)
    mine = mine.transform_filter(theme.BY_SCORE)
    curve = theme.seed_line(mine.transform_filter("!isValid(datum.threshold)"), labels, x, y)
    chance = theme.diagonal().encode(
        x=alt.X(**theme.share("a:Q", X)), y=alt.Y(**theme.share("a:Q", Y))
    )
    known = [theme.exact("fpr", "unknown let through"), theme.exact("tpr", "known answered")]
    at = theme.working_point(mine.transform_filter("isValid(datum.threshold)")).encode(
        x=x,
        y=y,
        color=theme.colour(labels),
        tooltip=[theme.FORMULATION, theme.SEED, alt.Tooltip("threshold:Q"), *known],
    )
    chart = alt.layer(chance, curve, at).properties(width=250, height=250)
    return chart.properties(title=SetName(name).short)


FIGURE = Figure(
    title="Keeping the known, refusing the unknown",
    caption=(
        "Up: known inputs that are answered. Right: unknown inputs let through by mistake. The "
        "nearer to the upper left corner, the better; dots mark the threshold that is set above, "
        "which is one of max p. The bar at the top switches the score."
    ),
    needs="`roc` curves, which need an OOD set",
    section="unknown",
    rows=rows,
    draw=draw,
)
