"""The gradient scale of a last layer: steps that fit an affine layer are to fit any, also those of SGD.

A head that measures distances in a small space multiplies them by a large s, so its gradients are hundreds of times
those of an affine layer; Adam does not mind, SGD at the rate of cross-entropy leaves the first step with dead features.
So what goes back is multiplied: for the embedding such that dz_k/df is as long as a row of a
fresh `nn.Linear`, 1 / sqrt(3); for each parameter by 1 / ||dz_k/dp||^2, so that a step of lr moves a logit by about lr.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.func import functional_call

ROWS, DRAWS = 256, 16  # that are looked at, and of signs: a single number sees one sum in each
ROW = 3**-0.5  # length of a row of a fresh nn.Linear

Gains = tuple[float, ...]  # for the embedding, then for each parameter in its order


def measured(layer: nn.Module, f: Tensor) -> Gains:
    """How much smaller than they come the gradients of a started layer should be; never larger.

    Random signs e have E ||d(sum e z)/dp||^2 = the sum over rows and classes of ||dz_k/dp||^2.
    """
    with torch.enable_grad():
        f = f.detach().reshape(-1, f.shape[-1])[:ROWS].float().requires_grad_()
        z = layer(f)
        draw, inputs = torch.Generator().manual_seed(0), [f, *layer.parameters()]
        squares = torch.zeros(len(inputs), dtype=torch.float64)
        for _ in range(DRAWS):
            signs = (torch.randint(2, z.shape, generator=draw) * 2 - 1).to(z)
            found = torch.autograd.grad(
                z, inputs, signs, retain_graph=True, allow_unused=True, materialize_grads=True
            )
            squares += torch.stack([g.detach().double().square().sum().cpu() for g in found])
    return tuple(gains((squares / (DRAWS * z.numel())).tolist()))


def gains(squares: list[float]) -> Iterator[float]:
    """A factor for each mean square of a gradient."""
    for place, square in enumerate(squares):
        if not 0 < square < float("inf"):
            yield 1.0
        else:
            yield min(1.0, 1 / square if place else ROW * square**-0.5)


def gently(layer: nn.Module, f: Tensor, found: Gains) -> Tensor:
    """The logits of a layer, whose gradients are multiplied on their way back."""
    first, *rest = found
    named = zip(layer.named_parameters(), rest, strict=True)
    own = {name: scaled(p, gain) for (name, p), gain in named}
    z: Tensor = functional_call(layer, own, (scaled(f, first),))
    return z


def scaled(x: Tensor, gain: float) -> Tensor:
    """The same numbers, bit by bit, with a gradient that is multiplied.

    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> scaled(x, 0.25).backward()
    >>> x.grad
    tensor(0.2500)
    """
    return x if gain == 1 else x.detach() + gain * (x - x.detach())
