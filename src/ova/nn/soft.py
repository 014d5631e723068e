"""Soft targets, as mixup and distillation have them: a share t_k of each class, the rest none of them."""

import torch
from torch import Tensor

from ova.errors import BadInput
from ova.nn.losses import PerExample
from ova.nn.transforms import transformed

SLACK = 1e-3  # by which shares may miss 0, 1 and their sum


def is_soft(z: Tensor, labels: Tensor) -> bool:
    """Whether the targets are shares of the classes and not class numbers."""
    return labels.is_floating_point() and labels.shape == z.shape


def soft_loss(loss: PerExample, z: Tensor, t: Tensor, smoothing: dict[str, float]) -> Tensor:
    """L = sum_k t_k L(z, k) + (1 - sum_k t_k) L(z, none): every loss of ours is linear in its target.

    Only shares above zero are computed, so two mixed examples cost three losses.

    >>> from ova.nn.losses import softmax_loss
    >>> z, t = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0.3, 0.0, 0.7]])
    >>> (soft_loss(softmax_loss, z, t, {}) - torch.nn.functional.cross_entropy(z, t)).abs() < 1e-6
    tensor([True])
    """
    check(t)
    shape, t = z.shape[:-1], t.reshape(-1, t.shape[-1])
    z = z.reshape(t.shape)
    rows, classes = t.nonzero(as_tuple=True)
    each = t[rows, classes] * loss(z[rows], classes, **smoothing)
    none = 1 - t.sum(-1)
    rest = none * loss(z, torch.full_like(none, -1, dtype=torch.long), **smoothing)
    return rest.index_add(0, rows, each.to(rest.dtype)).reshape(shape)


def check(t: Tensor) -> None:
    """Refuse what are no shares, where they can be looked at without stopping a GPU."""
    if t.device.type != "cpu" or torch.compiler.is_compiling() or transformed() or not t.numel():
        return
    low, most = float(t.min()), float(t.sum(-1).max())
    if not (low >= -SLACK and most <= 1 + SLACK):
        raise BadInput(
            f"soft targets are shares from 0 that add up to at most 1 (what is missing is none of the "
            f"classes), not from {low:g} with a sum of {most:g}"
        )
