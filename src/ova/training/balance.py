"""Rare classes: weights that let each class count nearer to the same, kept where they help on validation.

The loss of a row of class k counts (n / (K n_k))^1/2 times, divided by the mean over the rows: the square
root, because a class of three rows that counts as much as one of thousands is learned by heart.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.files import read_object, write_json
from ova.training.run_folder import DECISION

CHOICES = ("off", "on", "auto")
POWER = 0.5
UNEVEN = (
    20  # times the rows of the rarest class; of less uneven data only the plain weights are tried
)
LOSS = 0.01  # accuracy that the weights may cost on validation


def class_weights(y: Tensor, classes: int) -> Tensor:
    """How much a row of each class counts; the mean over the rows of classes is 1.

    >>> class_weights(torch.tensor([0] * 16 + [1] * 4 + [-1]), 2)
    tensor([0.8333, 1.6667])
    """
    n = torch.bincount(y[y >= 0], minlength=classes).double()
    raw = (n.sum() / (classes * n.clamp(min=1))) ** POWER
    return (raw * n.sum() / (raw * n).sum()).float()


def uneven(y: Tensor) -> bool:
    """Whether the rarest class that has rows is so rare that weights are worth a trial."""
    n = torch.bincount(y[y >= 0])
    return len(n) > 0 and int(n.max()) >= UNEVEN * int(n[n > 0].min())


@dataclass(frozen=True)
class Held:
    """What one way of weighting reaches on the validation rows."""

    accuracy: float
    recall: float  # mean over the classes that have rows

    @staticmethod
    def of(prediction: Tensor, y: Tensor) -> "Held":
        """Counted on the rows of the classes."""
        known = y >= 0
        hit, of = (prediction == y)[known].numpy(), y[known].numpy()
        n = np.bincount(of)
        recall = np.bincount(of, weights=hit)[n > 0] / n[n > 0]
        return Held(float(hit.mean()), float(recall.mean()))


def better(plain: Held, weighted: Held) -> bool:
    """Whether the weights help the rare classes and cost the others next to nothing."""
    return weighted.recall > plain.recall and weighted.accuracy >= plain.accuracy - LOSS


def decide(folder: Path, measure: Mapping[str, Callable[[], Held]]) -> str:
    """Which of both ways is kept, with the numbers that say so."""
    found = {way: at() for way, at in measure.items()}
    way = "on" if better(found["off"], found["on"]) else "off"
    held = {name: {"accuracy": h.accuracy, "recall": h.recall} for name, h in found.items()}
    write_json(folder / DECISION, {"balance": way, "validation": held})
    return way


def said(folder: Path) -> str:
    """The decision in a sentence; empty where none was taken."""
    if not (folder / DECISION).exists():
        return ""
    found = read_object(folder / DECISION)
    off, on = (found["validation"][way]["recall"] for way in ("off", "on"))
    kept = "kept" if found["balance"] == "on" else "not kept"
    return f"class weights were tried and {kept}: mean recall of the classes {on:.3f}, without {off:.3f} (validation)"
