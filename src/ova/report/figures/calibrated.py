"""ECE under shift as the model was trained, and after calibration on held-out examples."""

from collections.abc import Sequence

import altair as alt

from ova.files import Row
from ova.report import theme
from ova.report.figures.figure import Figure
from ova.report.figures.mean_severity import panel
from ova.report.select import over_types, shifts
from ova.training.run_folder import Run

TITLES = {"raw": "mean ECE as trained", "calibrated": "mean ECE after calibration"}


def rows(runs: Sequence[Run]) -> list[Row]:
    """Per run and severity the mean ECE over the types, before and after; none without both."""
    before, after = (shifts(runs, "ece", calibrated=state) for state in (False, True))
    return over_types(before, "raw") + over_types(after, "calibrated") if after else []


def draw(rows: Sequence[Row], labels: Sequence[str]) -> theme.Chart:
    """Two panels on one scale."""
    charts = [panel(state, title, labels) for state, title in TITLES.items()]
    chart = alt.concat(*charts, columns=2, spacing=30).resolve_scale(y="shared")
    return theme.finish(chart, rows, cell=340, extra=64)


FIGURE = Figure(
    title="And after calibration?",
    caption=(
        "Mean ECE over all types of shift at each severity, 0 being the test set: left as trained, "
        "right with a calibration that was fitted on validation examples. It cannot know the shift."
    ),
    needs="ECE of `shift/<type>/<severity>` sets after calibration",
    section="shift",
    rows=rows,
    draw=draw,
)
