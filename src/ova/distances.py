"""Euclidean distances to many centres: the cost of a matrix product, the digits of a subtraction."""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx

SUSPICIOUS = 8192  # d² below this many roundings of |f|² + |w|² has lost its digits
CHUNK = 2**21  # numbers per working copy: 8 MiB, which stays in the cache


def distances(f: Tensor, w: Tensor) -> Tensor:
    """Distance of each row of f (... x D) to each row of w (K x D), in float32 at least.

    d_k = ||f - w_k||, from |f - c|² + |w_k - c|² - 2 (f - c).(w_k - c) around a point c amid the
    centres; the few entries where that difference cancels are computed again by subtraction. The
    derivative at d = 0 is taken as 0.

    >>> distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[5., 0.]])
    """
    width = torch.promote_types(torch.promote_types(f.dtype, w.dtype), torch.float32)
    with torch.autocast(f.device.type, enabled=False):
        f, w = f.to(width), w.to(width)
        if torch.compiler.is_exporting() or torch.jit.is_tracing():  # type: ignore[attr-defined]
            return _portable(f, w)
        d: Tensor = _distances(f.reshape(-1, f.shape[-1]), w)[0]
        return d.reshape(*f.shape[:-1], len(w))


def _portable(f: Tensor, w: Tensor) -> Tensor:
    """The expansion in float64: plain operations for an exported graph, which knows no others."""
    c = _amid(w).double()
    f64, w64 = f.double() - c, w.double() - c
    squares = f64.square().sum(-1, keepdim=True) + w64.square().sum(-1) - 2 * f64 @ w64.T
    return squares.clamp(min=1e-30).sqrt().to(f.dtype)


@torch.library.custom_op("ova::distances", mutates_args=())
def _distances(f: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Distances (B x K), and the squared lengths of f - c (B) and of w - c (K) for the way back."""
    d, ww = f.new_empty(len(f), len(w)), w.new_empty(len(w))
    with torch.autocast(f.device.type, enabled=False):
        c = _amid(w)
        f0 = f - c
        ff = f0.square().sum(-1)
        for part in _parts(w):
            w0 = w[part] - c
            ww[part] = torch.linalg.vecdot(w0, w0)
            squares = d[:, part]
            torch.add(ff[:, None], ww[part], out=squares)
            squares.addmm_(f0, w0.T, alpha=-2)
            rows, columns = _cancelled(squares, ff, ww[part])
            squares.clamp_(min=0).sqrt_()
            for i, k in zip(rows.split(_pairs(f)), columns.split(_pairs(f)), strict=True):
                squares[i, k] = torch.linalg.vector_norm(f[i] - w[part][k], dim=-1)
    return d, ff, ww


@_distances.register_fake
def _(f: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return f.new_empty(len(f), len(w)), f.new_empty(len(f)), w.new_empty(len(w))


@torch.library.custom_op("ova::distances_backward", mutates_args=())
def _backward(
    g: Tensor, d: Tensor, f: Tensor, w: Tensor, ff: Tensor, ww: Tensor
) -> tuple[Tensor, Tensor]:
    """With a = g / d: df = sum_k a_k (f - w_k) and dw_k = sum_b a_k (w_k - f), two products."""
    df, dw = torch.empty_like(f), torch.empty_like(w)
    with torch.autocast(f.device.type, enabled=False):
        a = (g / d).masked_fill_(d == 0, 0)
        c = _amid(w)
        f0 = f - c
        close = []
        for part in _parts(w):
            rows, columns = _cancelled(d[:, part].square(), ff, ww[part])
            close.append((rows, columns + part.start, a[rows, columns + part.start]))
            a[rows, columns + part.start] = 0
        torch.mul(f0, a.sum(1, keepdim=True), out=df)
        for part in _parts(w):
            w0 = w[part] - c
            df.addmm_(a[:, part], w0, alpha=-1)
            torch.mul(w0, a[:, part].sum(0)[:, None], out=dw[part])
            dw[part].addmm_(a[:, part].T, f0, alpha=-1)
        for rows, columns, weights in close:
            for at in torch.arange(len(rows), device=f.device).split(_pairs(f)):
                i, k = rows[at], columns[at]
                pull = (f[i] - w[k]).mul_(weights[at, None])
                df.index_add_(0, i, pull)
                dw.index_add_(0, k, pull, alpha=-1)
    return df, dw


@_backward.register_fake
def _(_g: Tensor, _d: Tensor, f: Tensor, w: Tensor, *_: Tensor) -> tuple[Tensor, Tensor]:
    return torch.empty_like(f), torch.empty_like(w)


def _keep(ctx: FunctionCtx, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, ...]) -> None:
    d, ff, ww = output
    ctx.save_for_backward(d, *inputs, ff, ww)


def _gradients(ctx: FunctionCtx, g: Tensor, _ff: Tensor, _ww: Tensor) -> tuple[Tensor, Tensor]:
    df, dw = _backward(g, *ctx.saved_tensors)  # type: ignore[attr-defined]
    return df, dw


_distances.register_autograd(_gradients, setup_context=_keep)


def _amid(w: Tensor) -> Tensor:
    """A point amid the centres: the mean of at most 256 of them."""
    return w[:: max(1, len(w) // 256)].mean(0)


def _parts(w: Tensor) -> list[slice]:
    rows = max(1, CHUNK // max(1, w.shape[1]))
    return [slice(start, min(start + rows, len(w))) for start in range(0, len(w), rows)]


def _pairs(f: Tensor) -> int:
    return max(1, CHUNK // max(1, f.shape[1]))


def _cancelled(squares: Tensor, ff: Tensor, ww: Tensor) -> tuple[Tensor, Tensor]:
    """Where d² is too small a difference of |f|² + |w|² to be trusted."""
    share = SUSPICIOUS * torch.finfo(squares.dtype).eps
    rows, columns = (squares < share * ff[:, None] + share * ww).nonzero(as_tuple=True)
    return rows, columns
