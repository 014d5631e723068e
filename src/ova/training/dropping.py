"""Dropout that stays on while a network predicts (Gal and Ghahramani, 2016).

What is dropped follows from a seed, the row's number, the layer and the place in it, by a hash: the
batch that a row is in, the order, the processes and the device do not change it. Everything else of
the network is as it predicts, batch norm with it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from ova.errors import BadInput

BITS = 24  # of a draw; float32 holds as many
# Of SplitMix64 (Steele, Lea and Flood, 2014): the step of the counter, then shifts and factors; the
# last shift has no factor. As signed numbers, whose products wrap around as unsigned ones do.
STEP = 0x9E3779B97F4A7C15 - 2**64
ROUNDS = ((30, 0xBF58476D1CE4E5B9 - 2**64), (27, 0x94D049BB133111EB - 2**64), (31, 1))


def dropouts(net: nn.Module) -> list[nn.Dropout]:
    """The layers of a network that drop anything; none is an error.

    Dropout within a fused attention is no layer, and stays off.
    """
    found = [m for m in net.modules() if isinstance(m, nn.Dropout) and m.p > 0]
    if not found:
        raise BadInput(
            "samples > 0 asks for passes with dropout on, and the network has no dropout; train it with "
            "some (dropout=0.1), or leave samples out"
        )
    return found


@contextmanager
def dropping(net: nn.Module, rows: Tensor, seed: int) -> Iterator[None]:
    """Within it every dropout layer of a network that predicts drops what seed and row decide."""
    with ExitStack() as stack:
        for place, layer in enumerate(dropouts(net)):

            def dropped(
                module: nn.Dropout, _: tuple[Tensor, ...], h: Tensor, place: int = place
            ) -> Tensor:
                u = draws(rows.to(h.device), h[0].numel(), seed + place).view(h.shape)
                return torch.where(u >= module.p, h / (1 - module.p), 0.0)

            stack.enter_context(layer.register_forward_hook(dropped))
        yield


def draws(rows: Tensor, count: int, seed: int) -> Tensor:
    """So many numbers from [0, 1) for every row; a row's first ones do not depend on their number.

    >>> a, b = draws(torch.tensor([3, 5]), 4, seed=0), draws(torch.tensor([5]), 2, seed=0)
    >>> torch.equal(a[1, :2], b[0])
    True
    """
    own = mixed(mixed(torch.full_like(rows, seed)) + rows)
    counter = torch.arange(1, count + 1, device=rows.device)
    bits = mixed(own[:, None] + counter * STEP)
    u: Tensor = (bits & (2**BITS - 1)).float() / 2**BITS
    return u


def mixed(z: Tensor) -> Tensor:
    """A number of 64 bits in which every bit depends on every bit."""
    for shift, factor in ROUNDS:
        z = (
            z ^ ((z >> shift) & (2 ** (64 - shift) - 1))
        ) * factor  # the shift of an unsigned number
    return z
