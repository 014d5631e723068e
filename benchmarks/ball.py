"""Which parts of `ova-ball` let distances train at K = 964: Omniglot, one part changed at a time.

    python benchmarks/ball.py [--epochs 10] [--out FOLDER]

Prints test accuracy, ECE calibrated, and AUROC of max p against other alphabets, one seed. Some
twenty seconds of one core per epoch and row. A complete row is not run again when FOLDER is kept.
"""

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path

from torch import Tensor

from ova.files import read_lines
from ova.nn.ball import Ball
from ova.nn.formulation import one_vs_all
from ova.nn.formulations import FORMULATIONS
from ova.training.engine import Machine, launch
from ova.training.run_folder import MEASUREMENTS


class RandomDirections(Ball):
    """A ball whose start knows no targets."""

    def measure(self, f: Tensor, _: Tensor | None) -> dict[str, Tensor]:
        return super().measure(f, None)


def ball(**changed: float) -> type[Ball]:
    """A ball with other constants."""
    return type("ChangedBall", (Ball,), changed)


SAME, UNBOUNDED = 1e-6, 1e6  # of `room`
FASTER = "a last layer three times as fast"
VARIANTS = {
    "as it is": one_vs_all("", Ball),
    FASTER: one_vs_all("", Ball),
    "every length the same": one_vs_all("", ball(room=SAME)),
    "no bound on the length": one_vs_all("", ball(room=UNBOUNDED)),
    "numbers of size 1": one_vs_all("", ball(size=1.0)),
    "both: same length, size 1": one_vs_all("", ball(room=SAME, size=1.0)),
    "centres in random directions": one_vs_all("", RandomDirections),
    "targets smoothed by .1": one_vs_all("", Ball, smoothing=0.1),
    "softmax, targets smoothed by .1": FORMULATIONS["softmax-smooth"],
}
WANTED = {"accuracy": "test", "ece": "test", "auroc": "ood/evaluation"}


def result(folder: Path) -> dict[str, float]:
    """The three numbers of a finished run."""
    found: dict[str, float] = {}
    for row in read_lines(folder / MEASUREMENTS):
        right_score = row.get("score", "max_p") == "max_p"
        right_state = ("calibration" in row) == (row["metric"] == "ece")
        if WANTED.get(row["metric"]) == row["dataset"] and right_score and right_state:
            found.setdefault(row["metric"], row["value"])
    return found


def run(out: Path, epochs: int) -> None:
    # Recipes know formulations by name, from the moment they are imported.
    FORMULATIONS.update(VARIANTS)
    from ova.experiments.omniglot import BASE
    from ova.training.stages import load_task, stages

    machine = Machine(accelerator="cpu")
    print("| | accuracy | ECE, calibrated | AUROC |\n|---|---|---|---|")
    for name in VARIANTS:
        recipe = replace(BASE, formulation=name, epochs=epochs, shift="none")
        recipe = replace(recipe, head_lr=3.0) if name == FASTER else recipe
        folder = out / recipe.digest[:12]
        for _ in stages(
            launch(machine), recipe, folder, machine, lambda: load_task(BASE.data, None)
        ):
            pass
        numbers = result(folder)
        print(f"| {name} | " + " | ".join(f"{numbers[m]:.3f}" for m in WANTED) + " |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.out:
        run(args.out, args.epochs)
        return
    with tempfile.TemporaryDirectory() as place:
        run(Path(place), args.epochs)


if __name__ == "__main__":
    main()
