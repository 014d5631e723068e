"""The figures of the report by name, in the order of the page.

Each is a file of this folder, named like the figure, that declares `FIGURE`; a new one is a file and
a line here.
"""

from importlib import import_module

from ova.report.figures.figure import Figure as Figure

NAMES = (
    "landscape",
    "embedding",
    "reliability",
    "reliability-shift",
    "severity",
    "mean-severity",
    "calibrated",
    "heatmap-ece",
    "heatmap-accuracy",
    "threshold",
    "histogram",
    "risk-coverage",
    "roc",
    "precision-recall",
    "training",
    "search",
)

FIGURES: dict[str, Figure] = {
    name: import_module(f"{__name__}.{name.replace('-', '_')}").FIGURE for name in NAMES
}
