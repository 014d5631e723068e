"""Fractal pictures of our own: attractors of random affine maps, in random colours."""

from functools import cache
from math import pi

import torch
from torch import Tensor

POINTS, STEPS, SKIPPED = 4096, 40, 10  # of each picture
MAPS = 4
SEED = 0


@cache
def fractals(count: int, side: int) -> Tensor:
    """`count` pictures as uint8, count x 3 x side x side; the same ones every time.

    Barnsley (1988): a point that is moved by one of a few contracting maps at a time, drawn anew
    at every step, wanders over a fractal. How often a pixel is visited is its brightness.
    """
    draw = torch.Generator().manual_seed(SEED)
    maps, shifts = contractions(count, draw)
    at = torch.zeros(count, POINTS, 2)
    visits = torch.zeros(count, side * side)
    picture = torch.arange(count)[:, None]
    for step in range(STEPS):
        which = torch.randint(MAPS, (count, POINTS), generator=draw)
        at = torch.einsum("npij,npj->npi", maps[picture, which], at) + shifts[picture, which]
        if step >= SKIPPED:  # by now the points are on it
            visits.scatter_add_(1, pixels(at, side), torch.ones(count, POINTS))
    brightness = visits.log1p()
    brightness = brightness / brightness.amax(1, keepdim=True)
    ends = torch.rand(2, count, 3, 1, generator=draw)
    coloured = torch.lerp(ends[0], ends[1], brightness[:, None])
    return (255 * coloured).round().to(torch.uint8).view(count, 3, side, side)


def contractions(count: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    """Random maps of the plane that bring points nearer, and where they move them."""
    turns = 2 * pi * torch.rand(2, count, MAPS, generator=draw)
    sizes = 0.3 + 0.55 * torch.rand(count, MAPS, 2, generator=draw)
    first, second = (
        torch.stack([torch.stack([a.cos(), -a.sin()], -1), torch.stack([a.sin(), a.cos()], -1)], -2)
        for a in turns
    )
    shifts = 2 * torch.rand(count, MAPS, 2, generator=draw) - 1
    return first @ torch.diag_embed(sizes) @ second, shifts


def pixels(at: Tensor, side: int) -> Tensor:
    """The pixel of each point, with each picture just large enough for its points."""
    low, high = at.amin(1, keepdim=True), at.amax(1, keepdim=True)
    place = ((at - low) / (high - low).clamp(min=1e-6) * side).long().clamp(max=side - 1)
    return place[..., 1] * side + place[..., 0]
