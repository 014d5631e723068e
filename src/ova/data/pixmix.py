"""PixMix (Hendrycks et al., 2022): an image mixed again and again with fractals, for whole batches."""

import torch
from torch import Tensor

from ova.data.fractals import fractals
from ova.data.image_operations import WHITE, each, randomly_changed

ROUNDS, BETA, SEVERITY = 4, 3.0, 3.0  # the paper's for CIFAR
PICTURES = 256
TINY = 1e-6


def pixmix(x: Tensor, draw: torch.Generator, white: int = WHITE) -> Tensor:
    """Up to four rounds, in each of which a changed copy or a fractal is added or multiplied.

    uint8 images whose lightest value is `white`. The fractals are our own, the paper's came from a
    collection; the operations are AugMix's nine.
    """
    pixels = (x.float() * (WHITE / white)).round()
    mixed = torch.where(coin(len(x), draw), pixels, changed(pixels, draw)) / WHITE
    rounds = torch.randint(ROUNDS + 1, (len(x),), generator=draw)
    for done in range(ROUNDS):
        rows = (rounds > done).nonzero()[:, 0]
        n, now = len(rows), mixed[rows]
        other = torch.where(coin(n, draw), changed(pixels[rows], draw), pictures(x[rows], draw))
        a, b = shares(n, draw)
        both = torch.where(
            coin(n, draw), added(now, other / WHITE, a, b), multiplied(now, other / WHITE, a, b)
        )
        mixed = mixed.index_copy(0, rows, both.clamp(0, 1))
    return (mixed * white).round().to(torch.uint8)


def changed(pixels: Tensor, draw: torch.Generator) -> Tensor:
    """Each image after one random operation."""
    return randomly_changed(pixels, SEVERITY, draw)


def coin(n: int, draw: torch.Generator) -> Tensor:
    """For each image yes or no."""
    return each(torch.rand(n, generator=draw) < 0.5)


def pictures(x: Tensor, draw: torch.Generator) -> Tensor:
    """A fractal for each image, at its size and with its number of channels."""
    _, c, h, w = x.shape
    bank = fractals(PICTURES, max(h, w))
    chosen = bank[torch.randint(PICTURES, (len(x),), generator=draw), :, :h, :w].float()
    return chosen if c == 3 else chosen.mean(1, keepdim=True).expand(-1, c, -1, -1)


def shares(n: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """The numbers a and b of each image: Beta(3, 1) and Beta(1, 3), or 1 + Beta(1, 3) and -Beta(1, 3).

    Beta(b, 1) is the b-th root of a uniform number, and Beta(1, b) is one minus such a number.
    """
    first, second = torch.rand(2, n, 1, 1, 1, generator=draw) ** (1 / BETA)
    within = coin(n, draw)
    return torch.where(within, first, 2 - first), torch.where(within, 1 - second, second - 1)


def added(one: Tensor, other: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The sum a x + b y, around the middle grey."""
    return (a * (2 * one - 1) + b * (2 * other - 1) + 1) / 2


def multiplied(one: Tensor, other: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """The product x^a y^b, with the middle grey as one."""
    return (2 * one).clamp(min=TINY) ** a * (2 * other).clamp(min=TINY) ** b / 2
