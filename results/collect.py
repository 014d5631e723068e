"""Keep the evidence of complete runs: recipes, measurements, logs and manifests, without weights.

    python results/collect.py runs      merges them into results/<experiment>/
    python results/collect.py --time    says how long the committed recipes took, the cheap ones first
    python results/collect.py --recipes names them in that order, as `ova run` takes them

A run takes the place of the committed one with the same recipe; all others stay. Curves are kept
for seed 0 only: they are large, and one seed draws every figure. Of scores that are neither max p nor
the run's choice the metrics that a table shows are kept, to six digits.
"""

import os
import sys
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ova.errors import BadInput
from ova.files import Row
from ova.training.run_folder import (
    RUNS,
    Run,
    complete,
    is_collection,
    read,
    read_collection,
    write_collection,
)

HERE = Path(__file__).parent
SHOWN = ("auroc", "fpr95", "aupr_outside", "aurc", "augrc")  # of every score


def collect(runs: Path, into: Path = HERE) -> list[Run]:
    """Merge every complete run below a folder into the results; the runs that were merged."""
    folders = sorted(path for path in runs.glob("*/*") if path.is_dir() and complete(path))
    found = [light(read(folder)) for folder in folders]
    for experiment in sorted({run.experiment for run in found}):
        merge(into / experiment, (run for run in found if run.experiment == experiment))
    return found


def light(run: Run) -> Run:
    """The run, with its curves only if its seed is 0, and of most scores only what tables show."""
    whole = {"max_p", run.manifest.get("score", {}).get("chosen", "max_p")}
    rows = [
        row if row.get("score", "max_p") in whole else short(row)
        for row in run.measurements
        if row.get("score", "max_p") in whole or row["metric"] in SHOWN
    ]
    return replace(run, measurements=rows, curves=run.curves if run.seed == 0 else ())


def short(row: Row) -> Row:
    """The row with its value to six digits."""
    value = row["value"]
    return row | {"value": None if value is None else float(f"{value:.6g}")}


def merge(folder: Path, new: Iterable[Run]) -> None:
    """Add runs to those of a folder; a new one replaces the old one of its name."""
    old = read_collection(folder) if is_collection(folder) else []
    write_collection(folder, {run.id: run for run in (*old, *new)}.values())


def seconds() -> dict[str, float]:
    """How long the committed runs of each experiment took together, the cheap ones first."""
    spent = {
        folder.name: sum(sum(run.manifest["seconds"].values()) for run in read_collection(folder))
        for folder in HERE.iterdir()
        if is_collection(folder)
    }
    return dict(sorted(spent.items(), key=lambda item: item[1]))


def main() -> None:
    if sys.argv[1:] == ["--recipes"]:
        print(*(f"--recipe {os.path.relpath(HERE / name / RUNS)}" for name in seconds()))
        return
    if sys.argv[1:] == ["--time"]:
        spent = seconds()
        for experiment, each in spent.items():
            print(f"{experiment}: {each / 60:.1f} minutes when the committed results were made")
        print(f"all: {sum(spent.values()) / 60:.1f} minutes; complete runs are not run again")
        return
    for runs in sys.argv[1:] or ["runs"]:
        print(f"{len(collect(Path(runs)))} complete runs of {runs} are in {HERE.name}/")


if __name__ == "__main__":
    try:
        main()
    except BadInput as error:
        sys.exit(f"{error}")
