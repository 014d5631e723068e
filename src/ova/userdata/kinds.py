"""The kinds of data that can be trained on, each in a file of its own."""

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ova.errors import pick
from ova.userdata.kind import Kind, Preparation

_FILES = {  # name -> file; the first that fits is taken
    "image": "images",
    "text": "texts",
    "table": "tables",
}
KINDS: Mapping[str, Kind] = {
    name: import_module(f"ova.userdata.{file}").KIND for name, file in _FILES.items()
}
ENCODER = {"optimiser": "adamw", "lr": 5e-5, "schedule": "linear", "clip": 1.0}
# On a frozen encoder: the features are taken once and the head is fitted on all of them together, at
# the strength of regularisation that validation rows choose; 30 rounds are far more than it needs.
HEAD_ONLY = {
    "optimiser": "lbfgs",
    "lr": 1.0,
    "schedule": "constant",
    "epochs": 30,
    "patience": 0,
    "weight_decay": 0.0,
    "dropout": 0.0,
}
# The same step by step, for what changes from one step to the next: mirrored images, several networks.
HEAD_STEPS = {"optimiser": "adamw", "lr": 1e-3, "schedule": "linear"}
STEPS = ("optimiser", "members", "augment", "crop", "sides", "ema")  # settings that want steps


def preparation(kind: str, content: Mapping[str, Any], folder: Path) -> Preparation:
    """The preparation that a model folder describes."""
    return pick(KINDS, kind, "kind of data").load(content, folder)


def length(kind: Kind, rows: int) -> dict[str, int]:
    """Batch size, epochs and patience for so many training rows.

    >>> length(KINDS["table"], 1000)
    {'batch_size': 32, 'epochs': 192, 'patience': 48}
    """
    low, high = kind.batch
    batch = next(size for size in (16, 32, 64, 128, 256) if size >= min(high, rows / 32, 256))
    batch = max(low, batch)
    epochs = min(max(kind.steps * batch // rows, kind.epochs[0]), kind.epochs[1])
    return {"batch_size": batch, "epochs": epochs, "patience": patience(epochs)}


def patience(epochs: int) -> int:
    """For how many epochs without a better validation loss training goes on."""
    return max(5, epochs // 4)
