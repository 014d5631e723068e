"""The formulations by name: the paper's four, ours, and variants to compare them with.

A new one of known parts is a line; one with parts of its own is a file that says
`FORMULATION = ...`, as `ball.py` does, and a line.
"""

from functools import partial
from importlib import import_module

import torch
from torch import Tensor

from ova.nn.formulation import Formulation, one_vs_all, softmax
from ova.nn.heads import Affine, Distance, Even, LogitDistance, Rare, ScaledDistance
from ova.nn.isomax_plus import DirectionDistance
from ova.nn.links import BRIER, SIGMOID, TWICE_SIGMOID, focal
from ova.nn.losses import PerExample, softmax_loss, wide
from ova.nn.starting import StartedDistance

__all__ = ["DEFAULT", "DEFAULT_FROZEN", "FORMULATIONS", "PAPER", "PAPER_START", "Formulation"]


def exposed(weight: float) -> PerExample:
    """The softmax loss with examples of none of the classes at another weight."""

    def loss(z: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
        losses = softmax_loss(z, y, smoothing)
        return torch.where(y < 0, weight * losses, losses)

    return loss


def entropic(scale: float) -> PerExample:
    """The softmax loss of scaled logits: IsoMax trains with a scale that prediction leaves out."""

    def loss(z: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
        return softmax_loss(scale * wide(z), y, smoothing)

    return loss


# When the user names none; docs/choosing.md has the evidence.
DEFAULT = "ova-ball"
DEFAULT_FROZEN = "ova"  # distances want features that can move
PAPER = ("softmax", "dm", "ova", "ova-dm")  # in the paper's order
PAPER_START = {
    "ova-zero": "ova",
    "ova-dm-zero": "ova-dm",
}  # as the paper starts them, which we do not
FORMULATIONS: dict[str, Formulation] = {
    # The paper's 2 x 2; one-vs-all starts at p = 1/K.
    "softmax": softmax("affine logits, softmax", Affine),
    "dm": softmax("distances, softmax", Distance),
    "ova": one_vs_all("affine logits, sigmoid", Rare),
    "ova-dm": one_vs_all("distances, 2 sigmoid(-s d)", StartedDistance, TWICE_SIGMOID),
    # Ours.
    "ova-ball": import_module("ova.nn.ball").FORMULATION,
    "ova-roof": import_module("ova.nn.roof").FORMULATION,
    "ova-horizon": import_module("ova.nn.horizon").FORMULATION,
    "ova-island": import_module("ova.nn.island").FORMULATION,
    # What a user would pick instead.
    "logitnorm": import_module("ova.nn.logitnorm").FORMULATION,
    "t2fnorm": import_module("ova.nn.t2fnorm").FORMULATION,
    "isomax+": softmax("distances between directions, times 10 in the loss only", DirectionDistance, entropic(10)),
    "outlier-exposure": softmax("softmax, examples of none at half the weight", Affine, exposed(0.5)),
    # The paper's start.
    "ova-zero": one_vs_all("ova from p = 1/2", Even),
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
    "ova-smooth": one_vs_all("ova, smoothed targets", Rare, smoothing=0.1),
    # Other binary losses.
    "ova-focal": one_vs_all("ova with focal loss", Rare, binary=focal(2, 2)),
    "ova-asymmetric": one_vs_all("ova, focal on negatives only", Rare, binary=focal(0, 2)),
    "ova-brier": one_vs_all("ova with squared errors", Rare, binary=BRIER),
}  # fmt: skip
