"""Euclidean distances to many centres, as fast as a matrix product and as exact as a subtraction."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from ova.errors import BadInput
from ova.nn.transforms import transformed

SUSPICIOUS = 8192  # d² below this many roundings of |f|² + |w|² has lost its digits
SMALL = 2**20  # multiplications; below, calling many operators costs more than they do
CHUNK = 2**19  # numbers per working copy: 2 MiB, which stay in the cache


def distances(f: Tensor, w: Tensor) -> Tensor:
    """Distance of each row of f (... x D) to each row of w (K x D), in float32 at least.

    d_k = ||f - w_k||, from |f - c|² + |w_k - c|² - 2 (f - c).(w_k - c) around a point c amid the
    centres; the few entries where that difference cancels are computed again by subtraction.
    The derivative at d = 0 is taken as 0.

    >>> distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[5., 0.]])
    """
    width = torch.promote_types(torch.promote_types(f.dtype, w.dtype), torch.float32)
    if f.is_meta:  # a shape is all there is, and no autocast for it
        return f.new_empty(*f.shape[:-1], len(w), dtype=width)
    with torch.autocast(f.device.type, enabled=False):
        f, w = f.to(width), w.to(width)
        if torch.compiler.is_exporting() or torch.jit.is_tracing():  # type: ignore[attr-defined]
            return _portable(f, w)
        flat = f.reshape(-1, f.shape[-1])
        return _choose(flat, w).reshape(*f.shape[:-1], len(w))


def _choose(f: Tensor, w: Tensor) -> Tensor:
    """The way that is quickest for the size: one exact operator, or products and repairs."""
    if f.numel() * len(w) <= SMALL or transformed():
        return torch.cdist(f, w, compute_mode="donot_use_mm_for_euclid_dist")
    d: Tensor = _forward_op(f, w)[0] if torch.compiler.is_compiling() else _Distances.apply(f, w)
    return d


def _portable(f: Tensor, w: Tensor) -> Tensor:
    """The expansion in float64: plain operations for an exported graph, which knows no others."""
    f64, w64 = f.double(), w.double()
    c = w64.mean(0)
    f64, w64 = f64 - c, w64 - c
    squares = f64.square().sum(-1, keepdim=True) + w64.square().sum(-1) - 2 * f64 @ w64.T
    return squares.clamp(min=1e-30).sqrt().to(f.dtype)


def _forward(f: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distances (B x K), and the squared lengths of f - c (B) and of w - c (K) for the way back."""
    d, ww = f.new_empty(len(f), len(w)), w.new_empty(len(w))
    with torch.autocast(f.device.type, enabled=False):
        c = _amid(w)
        f0 = _from(c, f)
        ff = _squares(f0)
        for part in _parts(w, c):
            w0, squares = _from(c, w[part]), d[:, part]
            ww[part] = _squares(w0)
            torch.add(ff[:, None], ww[part], out=squares)
            squares.addmm_(f0, w0.T, alpha=-2)
            squares.clamp_(min=0).sqrt_()
        rows, columns = _cancelled(d, ff, ww)
        apart = ff[rows] + ww[columns] > 0
        for i, k in _pairs(rows[apart], columns[apart], f.shape[1]):
            d[i, k] = torch.linalg.vector_norm(f[i] - w[k], dim=-1)
    return d, ff, ww


def _backward(
    g: Tensor, d: Tensor, f: Tensor, w: Tensor, ff: Tensor, ww: Tensor
) -> tuple[Tensor, Tensor]:
    """With a = g / d: df = sum_k a_k (f - w_k) and dw_k = sum_b a_k (w_k - f), two products."""
    df, dw = torch.empty_like(f), torch.empty_like(w)
    with torch.autocast(f.device.type, enabled=False):
        a, c = g / d, _amid(w)
        rows, columns = _cancelled(d, ff, ww)
        apart = d[rows, columns] > 0  # a centre hit exactly has no direction to move in
        weights = a[rows, columns][apart]
        a[rows, columns] = 0
        f0 = _from(c, f)
        torch.mul(f0, a.sum(1, keepdim=True), out=df)
        for part in _parts(w, c):
            w0, share = _from(c, w[part]), a[:, part]
            df.addmm_(share, w0, alpha=-1)
            torch.mul(w0, share.sum(0)[:, None], out=dw[part])
            dw[part].addmm_(share.T, f0, alpha=-1)
        at = 0
        for i, k in _pairs(rows[apart], columns[apart], f.shape[1]):
            pull = (f[i] - w[k]).mul_(weights[at : at + len(i), None])
            df.index_add_(0, i, pull)
            dw.index_add_(0, k, pull, alpha=-1)
            at += len(i)
    return df, dw


def _amid(w: Tensor) -> Tensor | None:
    """A point c amid the centres to measure from; None where these lie around zero already."""
    some = w[:: max(1, len(w) // 64)]
    c = some.mean(0)
    spread = _squares(some).mean() - _squares(c)
    return c if bool(_squares(c) > 256 * spread) else None


def _squares(x: Tensor) -> Tensor:
    """|x|² of each row, without a copy of x."""
    length: Tensor = torch.linalg.vector_norm(x, dim=-1)
    return length.square_()


def _from(c: Tensor | None, x: Tensor) -> Tensor:
    return x if c is None else x - c


def _parts(w: Tensor, c: Tensor | None) -> list[slice]:
    """Slices of the centres, small enough for working copies; all at once where none is made."""
    step = max(1, CHUNK // w.shape[1] if c is not None else len(w))
    return [slice(start, min(start + step, len(w))) for start in range(0, len(w), step)]


def _pairs(rows: Tensor, columns: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of an example and a centre, few enough for working copies."""
    step = max(1, CHUNK // width)
    return zip(rows.split(step), columns.split(step), strict=True)


def _cancelled(d: Tensor, ff: Tensor, ww: Tensor) -> tuple[Tensor, Tensor]:
    """Pairs whose d² is too small a part of |f|² + |w|² to be trusted as their difference."""
    share = SUSPICIOUS * torch.finfo(d.dtype).eps
    if not d.numel():
        return d.new_empty(0, dtype=torch.long), d.new_empty(0, dtype=torch.long)
    # The nearest centre of each example tells which rows need a closer look, mostly few.
    rows = (d.amin(1).square_() <= share * (ff + ww.max())).nonzero()[:, 0]
    limits = torch.add(ff[rows, None], ww).mul_(share)
    i, columns = (d[rows].square_() <= limits).nonzero(as_tuple=True)
    return rows[i], columns


class _Distances(torch.autograd.Function):
    """The pair for eager mode, where a custom operator would cost more to call."""

    @staticmethod
    def forward(ctx: Any, f: Tensor, w: Tensor) -> Tensor:
        d, ff, ww = _forward(f, w)
        ctx.save_for_backward(d, f, w, ff, ww)
        return d

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        if torch.is_grad_enabled():  # of which this part would silently be missing
            raise BadInput("distances have no second derivative here; leave out create_graph=True")
        return _backward(g, *ctx.saved_tensors)


# The same pair for a compiled graph, which must not look inside: sizes there depend on values.
_forward_op = torch.library.custom_op("ova::distances", _forward, mutates_args=())
_backward_op = torch.library.custom_op("ova::distances_backward", _backward, mutates_args=())


@_forward_op.register_fake
def _(f: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return f.new_empty(len(f), len(w)), f.new_empty(len(f)), w.new_empty(len(w))


@_backward_op.register_fake
def _(_g: Tensor, _d: Tensor, f: Tensor, w: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(f), torch.empty_like(w)


def _keep(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor, Tensor]) -> None:
    d, ff, ww = output
    ctx.save_for_backward(d, *inputs, ff, ww)


def _gradients(ctx: Any, g: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
    df, dw = _backward_op(g, *ctx.saved_tensors)
    return df, dw


_forward_op.register_autograd(_gradients, setup_context=_keep)
