"""ROC curves of unknown inputs against known ones, with the slider's working point."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.predictions.sets import SetName
from ova.report.figures.figure import Figure
from ova.report.select import curves, unfold
from ova.report.theme import QUIET, SHOWN, Chart, colour, dash, finish, share
from ova.report.theme import values as data
from ova.report.thinning import thinned
from ova.report.thresholds import table
from ova.training.run_folder import Run

X, Y = "unknown inputs let through", "known inputs answered"


def rows(runs: Sequence[Run]) -> list[Row]:
    """Thinned curves, and for each threshold the point at which the model would work."""
    found: list[Row] = []
    for run in runs:
        for curve in curves(run, "roc"):
            head = {"label": run.label, "seed": run.seed, "dataset": curve["dataset"]}
            columns = thinned({k: curve["columns"][k] for k in ("fpr", "tpr")}, "fpr", "tpr")
            found += [head | point for point in unfold(columns)]
    return found + working_points(runs) if found else []


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


def draw(rows: Sequence[Row], labels: Sequence[str]) -> Chart:
    """One panel per OOD set; a known input is the positive class."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    charts = [panel(labels, name) for name in names]
    chart = alt.concat(*charts, columns=3, spacing=30)
    return finish(chart, rows, linked=True, cell=250, extra=62, columns=3, limit=360)


def panel(labels: Sequence[str], name: str) -> Chart:
    """The curves of every seed, chance as a diagonal, and a dot where the slider stands."""
    x = alt.X(**share("fpr:Q", X))
    y = alt.Y(**share("tpr:Q", Y))
    mine = alt.Chart().transform_filter(SHOWN).transform_filter(alt.datum.dataset == name)
    curve = mine.transform_filter("!isValid(datum.threshold)").mark_line(strokeWidth=1.6).encode(
        x=x, y=y, detail="seed:N", color=colour(labels), strokeDash=dash(labels), order="fpr:Q",
        tooltip=[alt.Tooltip("label:N", title="formulation"), alt.Tooltip("seed:N")],
    )  # fmt: skip
    chance = alt.Chart(data([{"a": 0}, {"a": 1}])).mark_line(color=QUIET, strokeWidth=1)
    chance = chance.encode(x=alt.X(**share("a:Q", X)), y=alt.Y(**share("a:Q", Y)))
    at = mine.transform_filter("isValid(datum.threshold)")
    at = at.transform_filter("abs(datum.threshold - threshold) < 1e-9")
    at = at.mark_point(filled=True, size=60, opacity=1, stroke="white", strokeWidth=1).encode(
        x=x, y=y, color=colour(labels),
        tooltip=[
            alt.Tooltip("label:N", title="formulation"),
            alt.Tooltip("seed:N"),
            alt.Tooltip("threshold:Q"),
            alt.Tooltip("fpr:Q", title="unknown let through", format=".4f"),
            alt.Tooltip("tpr:Q", title="known answered", format=".4f"),
        ],
    )  # fmt: skip
    chart = alt.layer(chance, curve, at).properties(width=250, height=250)
    return chart.properties(title=SetName(name).short)


FIGURE = Figure(
    title="Keeping the known, refusing the unknown",
    caption=(
        "Up: known inputs that are answered. Right: unknown inputs let through by mistake. The "
        "nearer to the upper left corner, the better; dots mark the threshold that is set above."
    ),
    needs="`roc` curves, which need an OOD set",
    section="unknown",
    rows=rows,
    draw=draw,
)
