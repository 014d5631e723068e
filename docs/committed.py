"""The committed results as tables in Markdown: read once, one row per formulation, one cell per number."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean

from ova.predictions import SetName
from ova.report import runs as found
from ova.report import select
from ova.report.intervals import over_seeds
from ova.training.run_folder import Run

ROOT = Path(__file__).resolve().parents[1]


@cache
def experiments() -> dict[str, list[Run]]:
    """The committed runs of each experiment."""
    return found.experiments(found.read([ROOT / "results"]))


def runs(experiment: str) -> dict[str, list[Run]]:
    """The runs of an experiment by formulation, the paper's first."""
    mine = experiments()[experiment]
    return {label: [run for run in mine if run.label == label] for label in found.labels(mine)}


@dataclass(frozen=True)
class Number:
    """What a cell shows: a metric on the sets that are meant, before or after calibration."""

    metric: str
    meant: Callable[[SetName], bool]
    calibrated: bool = False

    def of(self, run: Run) -> list[float]:
        """The values of a run, one per set."""
        rows = select.measured(run, self.metric, calibrated=self.calibrated)
        return [row["value"] for row in rows if self.meant(SetName(row["dataset"]))]


def on(metric: str, dataset: str, calibrated: bool = False) -> Number:
    """A metric on one set, `shift` and `shift/*/5` among them."""
    return Number(metric, lambda name: name == dataset, calibrated)


AUROC = Number("auroc", lambda name: name.outside)  # the mean over the outside sets


def cell(seeds: Iterable[Run], number: Number) -> str:
    """The mean over seeds ± half of its 95 % t-interval; a run's sets count by their mean."""
    values = [fmean(each) for run in seeds if (each := number.of(run))]
    if not values:
        return "-"
    mean = over_seeds(values)
    return f"{mean.mean:.3f}" + ("" if mean.high is None else f" ± {mean.high - mean.mean:.3f}")


def markdown(header: Iterable[str], rows: Iterable[Sequence[str]], corner: str = "") -> str:
    """A table; the first column is named by its corner."""
    names = [corner, *header]
    return "\n".join([line(names), "|---" * len(names) + "|", *map(line, rows)])


def line(cells: Iterable[str]) -> str:
    """One line of a table."""
    return "|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|"
