"""Models that meet classes which they were not trained on: clouds around corners, in a table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

import made_data
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request

CENTRES = {"a": (0, 0), "b": (9, 0), "c": (0, 9), "d": (9, 9), "e": (-9, 0), "f": (0, -9)}
SETTINGS = ("epochs=12", "batch_size=64")


def rows(names: Sequence[str], per_class: int, seed: int) -> list[list[object]]:
    """Rows of some of the classes, in the order of the classes."""
    draw = np.random.default_rng(seed)
    return [
        [*(np.array(CENTRES[n]) + draw.normal(size=2)), n] for n in names for _ in range(per_class)
    ]


def table(path: Path, names: Sequence[str], per_class: int, seed: int = 0) -> Path:
    return made_data.write_csv(path, ["x", "y", "label"], rows(names, per_class, seed))


def model(at: Path, names: Sequence[str], wanted: Promise, **more: str) -> Path:
    """A model of some of the classes, with its data beside it."""
    data = table(at / "known.csv", names, 250)
    machine = Machine(accelerator="cpu")
    gathered = gather(Request(data=data, settings=SETTINGS, **more))  # type: ignore[arg-type]
    for _ in train(launch(machine), gathered, at / "model", machine, wanted):
        pass
    return at / "model"
