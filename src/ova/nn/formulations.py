"""Head, link and loss bound as one value, so that what must agree cannot drift apart."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.nn.heads import (
    Affine,
    Ball,
    Distance,
    LastLayer,
    LogitDistance,
    ScaledDistance,
    StartedDistance,
)
from ova.nn.links import BRIER, CROSS_ENTROPY, SIGMOID, TWICE_SIGMOID, Binary, Link, focal
from ova.nn.losses import PerExample, one_vs_all_loss, softmax_loss, wide

HeadMaker = Callable[[int, int], LastLayer]


@dataclass(frozen=True)
class Formulation:
    """How a classifier ends: embedding -> logits z -> probabilities, and the loss to train it."""

    about: str
    head: HeadMaker  # (in_features, classes) -> a module that gives logits
    loss: PerExample  # (z, y, smoothing=0) -> one value per example
    probs: Callable[[Tensor], Tensor]
    log_probs: Callable[[Tensor], Tensor]
    normalised: bool  # whether the probabilities of an example sum to one


def softmax(about: str, head: HeadMaker, loss: PerExample = softmax_loss) -> Formulation:
    """Classes that exclude each other, with probabilities that sum to one."""
    return Formulation(about, head, loss, _softmax, _log_softmax, normalised=True)


def one_vs_all(
    about: str,
    head: HeadMaker,
    link: Link = SIGMOID,
    binary: Binary = CROSS_ENTROPY,
    trained_with: Link | None = None,
    smoothing: float = 0.0,
) -> Formulation:
    """One yes-or-no question per class: p_k = link(z_k), which may all be small."""
    loss = partial(one_vs_all_loss, smoothing=smoothing, link=trained_with or link, binary=binary)
    return Formulation(about, head, loss, _wide(link.p), _wide(link.log_p), normalised=False)


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


def _wide(link: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda z: link(wide(z))


def _softmax(z: Tensor) -> Tensor:
    return torch.softmax(wide(z), -1)


def _log_softmax(z: Tensor) -> Tensor:
    return F.log_softmax(wide(z), -1)


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
    "ova-ball": one_vs_all("bounded embedding in balls with soft borders, sigmoid(r - s d)", Ball),
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
