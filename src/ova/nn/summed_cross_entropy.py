"""The sum of K binary cross-entropies per example, in chunks of rows that stay in the cache."""

from typing import Any

import torch
from torch import Tensor

from ova.nn.links import Link
from ova.nn.transforms import transformed

CHUNK = 2**17  # logits per working copy on a CPU
SMALL = 2**14  # logits; below, the graph of single operations costs nothing


def summed_cross_entropy(z: Tensor, own: Tensor, known: Tensor, link: Link) -> Tensor:
    """-log p_y - sum_{j != y} log(1 - p_j), without log p_y where no class is known.

    z is ... x K, `own` ... x 1 the index y, `known` ... x 1 whether it counts.

    >>> from ova.nn.links import SIGMOID
    >>> own, known = torch.tensor([[0], [0]]), torch.tensor([[True], [False]])
    >>> summed_cross_entropy(torch.zeros(2, 3), own, known, SIGMOID).exp()
    tensor([8., 8.])
    """
    recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined]
    if z.numel() < SMALL or recorded or transformed():
        return _by_single_operations(z, own, known, link)
    rows = z.shape[:-1]
    flat = z.reshape(-1, z.shape[-1])
    loss: Tensor = _SummedCrossEntropy.apply(flat, own.reshape(-1, 1), known.reshape(-1, 1), link)
    return loss.reshape(rows)


def _by_single_operations(z: Tensor, own: Tensor, known: Tensor, link: Link) -> Tensor:
    of_own = _log_of_own(z, own, known, link)
    return -link.log_not_p(z).scatter(-1, own, of_own).sum(-1)


def _log_of_own(z: Tensor, own: Tensor, known: Tensor, link: Link) -> Tensor:
    """The own class's log p, or its log(1 - p) where it does not count."""
    of_own = z.gather(-1, own)
    return torch.where(known, link.log_p(of_own), link.log_not_p(of_own))


class _SummedCrossEntropy(torch.autograd.Function):
    """The same loss, which keeps the logits alone for the way back."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, own: Tensor, known: Tensor, link: Link) -> Tensor:
        ctx.save_for_backward(z, own, known)
        ctx.link = link
        loss, of_own = z.new_empty(len(z)), _log_of_own(z, own, known, link)
        for part in _parts(z):
            logs = link.log_not_p(z[part]).scatter_(-1, own[part], of_own[part])
            torch.sum(logs, -1, out=loss[part])
        return loss.neg_()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None, None, None]:
        z, own, known = ctx.saved_tensors
        link: Link = ctx.link
        if torch.is_grad_enabled():  # somebody wants the gradient of this gradient
            loss = _by_single_operations(z, own, known, link)
            return *torch.autograd.grad(loss, z, g, create_graph=True), None, None, None
        slopes = torch.empty_like(z)
        for part in _parts(z):
            torch.mul(link.slope_no(z[part]), g[part, None], out=slopes[part])
        of_own = z.gather(-1, own)
        of_own = torch.where(known, link.slope_yes(of_own), link.slope_no(of_own))
        return slopes.scatter_(-1, own, of_own * g[:, None]), None, None, None


def _parts(z: Tensor) -> list[slice]:
    """Slices of rows; a device with its own memory takes all rows at once."""
    step = max(1, CHUNK // z.shape[1]) if z.device.type == "cpu" else len(z)
    return [slice(at, at + step) for at in range(0, len(z), step)]
