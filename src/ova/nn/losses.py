"""Losses from logits, one value per example.

A target y is a class 0 ... K - 1, or -1 for an example that belongs to none of the K.
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.errors import BadInput
from ova.nn.links import CROSS_ENTROPY, SIGMOID, Binary, Link
from ova.nn.summed_cross_entropy import summed_cross_entropy
from ova.nn.transforms import transformed


class PerExample(Protocol):
    """Logits (... x K) and targets (...) to losses (...)."""

    def __call__(self, z: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor: ...


def softmax_loss(z: Tensor, y: Tensor, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy between softmax(z) and the target; the target of "none" is uniform.

    L = - sum_k t_k log softmax(z)_k,  t = (1 - e) onehot(y) + e / K,  e = 1 where y = -1.

    >>> softmax_loss(torch.zeros(2, 4), torch.tensor([3, -1])).exp()
    tensor([4., 4.])
    """
    own, known = targets(z, y)
    log_p = F.log_softmax(wide(z), -1)
    of_own, evenly = log_p.gather(-1, own)[..., 0], log_p.mean(-1)
    if smoothing:
        of_own = torch.lerp(of_own, evenly, smoothing)
    return -torch.where(known, of_own, evenly)


def one_vs_all_loss(
    z: Tensor,
    y: Tensor,
    smoothing: float = 0.0,
    link: Link = SIGMOID,
    binary: Binary = CROSS_ENTROPY,
) -> Tensor:
    """Sum of K binary losses: yes for the own class, no for the others, K times no for "none".

    L = yes(z_y) + sum_{j != y} no(z_j); smoothed, L = sum_k t_k yes(z_k) + (1 - t_k) no(z_k)
    with t = (1 - e) onehot(y) + e / K, and t = 0 for "none".

    >>> one_vs_all_loss(torch.zeros(2, 3), torch.tensor([0, -1])).exp()
    tensor([8., 8.])
    """
    own, known = targets(z, y)
    z, known = wide(z), known[..., None]
    if smoothing:
        even = smoothing / z.shape[-1]
        t = torch.full_like(z, even).scatter(-1, own, 1 - smoothing + even) * known
        return (t * binary.yes(link, z) + (1 - t) * binary.no(link, z)).sum(-1)
    if binary == CROSS_ENTROPY:
        return summed_cross_entropy(z, own, known, link)
    of_own = z.gather(-1, own)
    of_own = torch.where(known, binary.yes(link, of_own), binary.no(link, of_own))
    return binary.no(link, z).scatter(-1, own, of_own).sum(-1)


def wide(z: Tensor) -> Tensor:
    """Logits in float32 at least: half precision has too few digits for log(1 - p)."""
    return z.to(torch.promote_types(z.dtype, torch.float32))


def targets(z: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """The own class of each example as an index (... x 1), and whether it has one.

    A target outside -1 ... K - 1 is an error. On a GPU and in a compiled graph looking at it would
    stop the pipeline, in `torch.func` nothing can be looked at: there the index fails by itself.
    """
    if y.shape != z.shape[:-1]:
        wanted = f"one class number per example is needed, shape {tuple(z.shape[:-1])}"
        if y.shape == (*z.shape[:1], *z.shape[2:]):  # as F.cross_entropy has it
            wanted = "the classes are the last axis here: give z.movedim(1, -1)"
        raise BadInput(
            f"targets of shape {tuple(y.shape)} do not fit logits of shape {tuple(z.shape)}; {wanted}"
        )
    if y.is_floating_point() or y.is_complex() or y.dtype == torch.bool:
        raise BadInput(f"targets are class numbers (int64), not {y.dtype}")
    y = y.long()
    blind = y.device.type != "cpu" or torch.compiler.is_compiling() or transformed()
    if y.numel() and not blind:
        low, high = (int(end) for end in y.aminmax())
        if low < -1 or high >= z.shape[-1]:
            wrong = low if low < -1 else high
            raise BadInput(
                f"target {wrong} is not one of the {z.shape[-1]} classes; "
                f"0 to {z.shape[-1] - 1} are, and -1 means none of them"
            )
    known = y != -1
    return torch.where(known, y, 0)[..., None], known
