"""Five seeds answered as one beside each of them, and the mean over passes with dropout on.

On the digits, softmax and one-vs-all: accuracy and ECE on the test set, AUROC of the unknown digits
(the mean of eights and nines) and AURC of both mixed with the test set, by the confidence. Runs in a
folder that is given are gone on with.

Command: python benchmarks/ensembles.py [FOLDER]; it trains some twenty small networks.
"""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import torch

from ova.experiments import EXPERIMENTS
from ova.predictions.sets import TEST, SetName
from ova.report.runs import where
from ova.training.engine import Machine, launch
from ova.training.ensemble import ensemble
from ova.training.recipe import Recipe
from ova.training.run_folder import read_measurements
from ova.training.stages import Place, carry_out

FORMULATIONS, SEEDS = ("softmax", "ova"), 5
EPOCHS, SAMPLES, DROPOUT = 8, 20, 0.2
CELLS: dict[str, Callable[[SetName], bool]] = {
    "accuracy": lambda name: name == TEST,
    "ece": lambda name: name == TEST,
    "auroc": lambda name: name.outside,
    "aurc": lambda name: name.mixed,
}
ROW = "{:<34} {:>8} {:>8} {:>8} {:>10}"


def main(place: Place) -> None:
    """Print a line per run, their mean, and what the seeds say together."""
    torch.set_num_threads(1)
    print(ROW.format("digits", "accuracy", "ECE", "AUROC", "mixed AURC"))
    for formulation in FORMULATIONS:
        base = replace(EXPERIMENTS["digits"].base(formulation), shift="none", epochs=EPOCHS)
        members = list(carried_out(base, place))
        for seed, member in enumerate(members):
            show(f"{formulation}, seed {seed}", [member])
        show(f"{formulation}, mean of {SEEDS} seeds", members)
        out = members[0].parent / f"{formulation}-x{SEEDS}"
        for _ in ensemble(members, out):
            pass
        show(f"{formulation} x {SEEDS}", [out])
        dropped = replace(base, dropout=DROPOUT)
        for samples in (0, SAMPLES):
            runs = list(carried_out(replace(dropped, samples=samples), place, seeds=2))
            show(f"{formulation}, dropout {DROPOUT}, {samples or 'no'} passes", runs)


def carried_out(base: Recipe, place: Place, seeds: int = SEEDS) -> Iterator[Path]:
    """The folders of the first seeds of a recipe, complete."""
    machine = Machine(accelerator="cpu")
    fabric = launch(machine)
    for seed in range(seeds):
        recipe = replace(base, seed=seed)
        for _ in carry_out(fabric, recipe, place, machine):
            pass
        yield place.folder(recipe)


def show(name: str, folders: Sequence[Path]) -> None:
    """One line: the means over some runs."""
    cells = zip(*map(cells_of, folders), strict=True)
    print(ROW.format(name, *(f"{fmean(cell):.4f}" for cell in cells)), flush=True)


def cells_of(folder: Path) -> list[float]:
    """Accuracy, ECE, AUROC and mixed AURC of a run, before calibration."""
    rows = [r for r in read_measurements(folder) if "calibration" not in r]
    return [
        fmean(
            row["value"]
            for row in rows
            if row["metric"] == metric
            and about(SetName(row["dataset"]))
            and where(row, score="max_p", rule="equal-width")
        )
        for metric, about in CELLS.items()
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Place(Path(sys.argv[1])))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Place(Path(folder)))
