"""The formulations by name: the paper's four, ours, and variants to compare them with.

A new one of known parts is a line; one with parts of its own is a file that says
`FORMULATION = ...`, as `ball.py` does, and a line.
"""

from functools import partial
from importlib import import_module

from torch import Tensor

from ova.nn.formulation import Formulation, one_vs_all, softmax
from ova.nn.heads import Affine, Distance, LastLayer, LogitDistance, ScaledDistance
from ova.nn.links import BRIER, SIGMOID, TWICE_SIGMOID, focal
from ova.nn.losses import PerExample, softmax_loss, wide
from ova.nn.starting import StartedDistance

__all__ = ["DEFAULT", "DEFAULT_FROZEN", "FORMULATIONS", "PAPER", "Formulation"]


def entropic(scale: float) -> PerExample:
    """The softmax loss of scaled logits: IsoMax trains with a scale that prediction leaves out."""

    def loss(z: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
        return softmax_loss(scale * wide(z), y, smoothing)

    return loss


def rare(in_features: int, classes: int) -> LastLayer:
    """An affine head on which every class starts at p = 1/K."""
    return Affine(in_features, classes, p=1 / classes)


def even(in_features: int, classes: int) -> LastLayer:
    """An affine head on which every class starts at p = 1/2."""
    return Affine(in_features, classes, p=1 / 2)


# When the user names none; docs/choosing.md has the evidence.
DEFAULT = "ova-ball"
DEFAULT_FROZEN = "ova"  # distances want features that can move
PAPER = ("softmax", "dm", "ova", "ova-dm")  # in the paper's order
FORMULATIONS: dict[str, Formulation] = {
    # The paper's 2 x 2; one-vs-all starts at p = 1/K.
    "softmax": softmax("affine logits, softmax", Affine),
    "dm": softmax("distances, softmax", Distance),
    "ova": one_vs_all("affine logits, sigmoid", rare),
    "ova-dm": one_vs_all("distances, 2 sigmoid(-d)", StartedDistance, TWICE_SIGMOID),
    # Ours.
    "ova-ball": import_module("ova.nn.ball").FORMULATION,
    # The paper's start.
    "ova-zero": one_vs_all("ova from p = 1/2", even),
    "ova-dm-zero": one_vs_all("ova-dm with all centres at zero", Distance, TWICE_SIGMOID),
    # What others do with distances.
    "dm-isomax": softmax("dm, logits times 10 in the loss only", Distance, entropic(10)),
    "dm-scaled": softmax("dm with a learned scale", ScaledDistance),
    "ova-dm-released": one_vs_all(
        "ova-dm as released: distances between logits, trained with sigmoid(-d)",
        LogitDistance, TWICE_SIGMOID, trained_with=SIGMOID,
    ),
    # Targets smoothed by .1.
    "softmax-smooth": softmax("softmax, smoothed targets", Affine, partial(softmax_loss, smoothing=0.1)),
    "ova-smooth": one_vs_all("ova, smoothed targets", rare, smoothing=0.1),
    # Other binary losses.
    "ova-focal": one_vs_all("ova with focal loss", rare, binary=focal(2, 2)),
    "ova-asymmetric": one_vs_all("ova, focal on negatives only", rare, binary=focal(0, 2)),
    "ova-brier": one_vs_all("ova with squared errors", rare, binary=BRIER),
}  # fmt: skip
