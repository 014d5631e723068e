"""The kinds of data that can be trained on, each with a model and settings that suit it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ova.errors import BadInput, pick
from ova.userdata import images, tables, texts
from ova.userdata.preparation import Preparation


@dataclass(frozen=True)
class Kind:
    """How a kind is trained when the user says nothing."""

    load: Callable[[Mapping[str, Any], Path], Preparation]
    settings: Mapping[str, Any]  # of the recipe
    steps: int  # of training, about
    epochs: tuple[int, int]  # at least, at most
    batch: tuple[int, int]  # the same


KINDS: Mapping[str, Kind] = {
    "image": Kind(
        load=lambda content, _: images.from_json(content),
        settings={"model": "resnet20", "optimiser": "adamw", "lr": 3e-3, "weight_decay": 0.05,
                  "schedule": "cosine"},
        steps=8_000, epochs=(15, 100), batch=(16, 128),
    ),
    "text": Kind(
        load=texts.from_json,
        settings={"model": "text-cnn", "optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.01,
                  "schedule": "linear", "dropout": 0.3},
        steps=4_300, epochs=(10, 20), batch=(16, 64),
    ),
    "table": Kind(
        load=lambda content, _: tables.from_json(content),
        settings={"model": "mlp-256", "optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.01,
                  "schedule": "cosine", "dropout": 0.1},
        steps=6_000, epochs=(20, 200), batch=(16, 256),
    ),
}  # fmt: skip
ENCODER = {"optimiser": "adamw", "lr": 5e-5, "schedule": "linear", "clip": 1.0}
HEAD_ONLY = {"optimiser": "adamw", "lr": 1e-3, "schedule": "linear"}  # on a frozen encoder


def preparation(kind: str, content: Mapping[str, Any], folder: Path) -> Preparation:
    """The preparation that a model folder describes."""
    try:
        return pick(KINDS, kind, "kind of data").load(content, folder)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"{folder}: its preparation is incomplete ({error!r})") from None


def length(kind: Kind, rows: int) -> dict[str, int]:
    """Batch size, epochs and patience for so many training rows.

    >>> length(KINDS["table"], 1000)
    {'batch_size': 32, 'epochs': 192, 'patience': 48}
    """
    low, high = kind.batch
    batch = next(size for size in (16, 32, 64, 128, 256) if size >= min(high, rows / 32, 256))
    batch = max(low, batch)
    epochs = min(max(kind.steps * batch // rows, kind.epochs[0]), kind.epochs[1])
    return {"batch_size": batch, "epochs": epochs, "patience": max(5, epochs // 4)}
