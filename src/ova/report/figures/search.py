"""The history of a hyper-parameter search: every trial, and the best so far."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.training.run_folder import Run

ABOUT = ("experiment", "formulation", "trial", "state", "value")


def rows(runs: Sequence[Run]) -> list[Row]:
    """The trials of each label with the best validation loss up to each of them."""
    found: list[Row] = []
    searches = {run.recipe.get("formulation", run.label): run.trials for run in runs}
    for label, trials in searches.items():
        best = float("inf")
        for trial in trials:
            value = trial.get("value")
            best = min(best, value) if isinstance(value, int | float) else best
            head = {"label": label, "trial": trial["trial"], "value": value}
            found.append(head | {"best": best if best < float("inf") else None} | settings(trial))
    return found


def settings(trial: Row) -> Row:
    """What was tried, as one string for the tooltip."""
    chosen = {key: value for key, value in trial.items() if key not in ABOUT}
    return {
        "settings": ", ".join(
            f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in chosen.items()
        )
    }


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """Dots are trials, the line is the best so far."""
    base = alt.Chart(theme.LATER).transform_filter(theme.LABEL_SHOWN)
    x = alt.X("trial:Q", title="trial", axis=alt.Axis(tickMinStep=1))
    dots = base.mark_circle(size=36, opacity=0.6).encode(
        x=x,
        y=alt.Y("value:Q", title="validation loss", scale=alt.Scale(zero=False)),
        color=theme.colour(labels),
        tooltip=[
            theme.FORMULATION,
            alt.Tooltip("trial:Q"),
            alt.Tooltip("value:Q", title="validation loss", format=".5f"),
            alt.Tooltip("settings:N"),
        ],
    )
    line = base.mark_line(interpolate="step-after").encode(
        x=x, y="best:Q", color=theme.colour(labels)
    )
    chart = alt.layer(line, dots).properties(width=640, height=240)
    return theme.finish(chart, rows, cell=300, extra=70)


FIGURE = Figure(
    title="Search",
    caption="Each dot is a trial of the search; the line is the best so far.",
    needs="trials of `ova tune`",
    section="training",
    rows=rows,
    draw=draw,
)
