"""Logits that fall with the squared distance to K centres, for the price of a linear layer."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.nn.transforms import transformed

SMALL = 2**20  # weights; below, a second pass over them costs nothing


def falling_squares(g: Tensor, w: Tensor, b: Tensor, e: Tensor, reach: float) -> Tensor:
    """z_k = b_k + e (reach ||c_k||² - ||g - c_k||²) with w_k = 2e c_k; g (... x D), w (K x D), e > 0.

    Computed as w_k.g + b_k - (1 - reach) ||w_k||² / 4e - e ||g||².

    >>> g, w = torch.tensor([[3.0, 4.0]]), torch.tensor([[2.0, 0.0], [0.0, 8.0]])  # c = w / 2
    >>> falling_squares(g, w, torch.zeros(2), torch.tensor(1.0), reach=0.5)
    tensor([[-19.5000,  -1.0000]])
    """
    if reach == 1:
        return F.linear(g, w, b) - e * g.square().sum(-1, keepdim=True)
    recorded = torch.compiler.is_compiling() or torch.jit.is_tracing()  # type: ignore[attr-defined]
    if w.numel() < SMALL or recorded or transformed():
        return _by_single_operations(g, w, b, e, reach)
    flat = g.reshape(-1, g.shape[-1])
    z: Tensor = _FallingSquares.apply(flat, w, b, e, reach)
    return z.reshape(*g.shape[:-1], len(w))


def _by_single_operations(g: Tensor, w: Tensor, b: Tensor, e: Tensor, reach: float) -> Tensor:
    z = F.linear(g, w, b - (1 - reach) / (4 * e) * w.square().sum(-1))
    return z - e * g.square().sum(-1, keepdim=True)


class _FallingSquares(torch.autograd.Function):
    """The same logits; on the way back ||w_k||² shares one pass over the weights with the product."""

    @staticmethod
    def forward(ctx: Any, g: Tensor, w: Tensor, b: Tensor, e: Tensor, reach: float) -> Tensor:
        gg, ww = (torch.linalg.vector_norm(x, dim=-1).square_() for x in (g, w))
        ctx.save_for_backward(g, w, b, e, gg, ww)
        ctx.reach = reach
        z: Tensor = (b - (1 - reach) / (4 * e) * ww) - (e * gg)[:, None]
        z.addmm_(g, w.T)
        return z

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor | None, ...]:
        g, w, b, e, gg, ww = ctx.saved_tensors
        if torch.is_grad_enabled():  # somebody wants the gradient of this gradient
            z = _by_single_operations(g, w, b, e, ctx.reach)
            return *torch.autograd.grad(z, (g, w, b, e), slope, create_graph=True), None
        of_rows, of_classes, share = slope.sum(1), slope.sum(0), (1 - ctx.reach) / e
        dg = (-2 * e * of_rows)[:, None] * g
        dw = (-share / 2 * of_classes)[:, None] * w
        de = share / (4 * e) * (of_classes @ ww) - of_rows @ gg
        return dg.addmm_(slope, w), dw.addmm_(slope.T, g), of_classes, de, None
