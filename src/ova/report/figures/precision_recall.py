"""Precision and recall of answering the known among the unknown."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.predictions.sets import SetName
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.scores import points
from ova.report.select import distinct
from ova.training.run_folder import Run


def rows(runs: Sequence[Run]) -> list[Row]:
    """Thinned curves with known inputs as the positive class."""
    return points(runs, "precision_recall", ("recall", "precision"))


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """One panel per OOD set, the curves of every seed."""
    charts = [panel(labels, name) for name in distinct(rows, "dataset")]
    chart = alt.concat(*charts, columns=3, spacing=30)
    return theme.finish(chart, rows, scored=True, cell=250, extra=62, columns=3, limit=360)


def panel(labels: Sequence[str], name: str) -> theme.Chart:
    """The curves of one OOD set."""
    mine = alt.Chart().transform_filter(theme.SHOWN).transform_filter(alt.datum.dataset == name)
    mine = mine.transform_filter(theme.BY_SCORE)
    x = alt.X(**theme.share("recall:Q", "known inputs answered (recall)"))
    y = alt.Y(**theme.share("precision:Q", "known among the answered (precision)"))
    line = theme.seed_line(mine, labels, x, y)
    return line.properties(width=250, height=250, title=SetName(name).short)


FIGURE = Figure(
    title="How pure are the answers?",
    caption="Of the inputs that are answered, how many are known at all? Higher is better. By the score in the bar.",
    needs="`precision_recall` curves, which need an OOD set",
    section="unknown",
    rows=rows,
    draw=draw,
)
