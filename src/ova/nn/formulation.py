"""What a formulation is: last layer, link and loss as one value, so that they cannot drift apart."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.nn.heads import LastLayer
from ova.nn.links import CROSS_ENTROPY, SIGMOID, Binary, Link
from ova.nn.losses import PerExample, one_vs_all_loss, softmax_loss, wide


@dataclass(frozen=True)
class Formulation:
    """How a classifier ends: embedding -> logits z -> probabilities, and the loss to train it."""

    about: str
    head: type[LastLayer]  # (in_features, classes) -> a module that gives logits
    loss: PerExample  # (z, y, smoothing=0) -> one value per example
    probs: Callable[[Tensor], Tensor]
    log_probs: Callable[[Tensor], Tensor]
    normalised: bool  # whether the probabilities of an example sum to one

    @property
    def far_is_none(self) -> bool:
        """Whether every p_k goes to 0 wherever the length of the embedding grows without bound."""
        return self.head.falls and not self.normalised


def softmax(about: str, head: type[LastLayer], loss: PerExample = softmax_loss) -> Formulation:
    """Classes that exclude each other, with probabilities that sum to one."""
    return Formulation(about, head, loss, _softmax, _log_softmax, normalised=True)


def one_vs_all(
    about: str,
    head: type[LastLayer],
    link: Link = SIGMOID,
    binary: Binary = CROSS_ENTROPY,
    trained_with: Link | None = None,
    smoothing: float = 0.0,
) -> Formulation:
    """One yes-or-no question per class: p_k = link(z_k), which may all be small."""
    loss = partial(one_vs_all_loss, smoothing=smoothing, link=trained_with or link, binary=binary)
    return Formulation(about, head, loss, _wide(link.p), _wide(link.log_p), normalised=False)


def _wide(link: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda z: link(wide(z))


def _softmax(z: Tensor) -> Tensor:
    return torch.softmax(wide(z), -1)


def _log_softmax(z: Tensor) -> Tensor:
    return F.log_softmax(wide(z), -1)
