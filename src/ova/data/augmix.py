"""AugMix (Hendrycks et al., 2020): an image mixed with changed copies of itself, for whole batches."""

import torch
from torch import Tensor

from ova.data.image_operations import WHITE, each, randomly_changed

WIDTH, DEPTH, SEVERITY = 3, 3, 3.0  # chains, operations in a chain at most, their strength of 10


def augmix(x: Tensor, draw: torch.Generator, white: int = WHITE) -> Tensor:
    """The mixture m x + (1 - m) sum_i w_i chain_i(x), w ~ Dirichlet(1, 1, 1), m ~ U(0, 1).

    Every image has its own; a chain is one to three random operations. uint8 images whose lightest
    value is `white`. The paper's second part, a loss that asks for the same answer to two such
    mixtures, is left out.
    """
    n = len(x)
    pixels = (x.float() * (WHITE / white)).round()
    weights = torch.rand(n, WIDTH, generator=draw).clamp(min=1e-12).log()
    weights = weights / weights.sum(1, keepdim=True)
    own = each(torch.rand(n, generator=draw))
    mixed = own * pixels
    for chain in range(WIDTH):
        mixed += (1 - own) * each(weights[:, chain]) * chained(pixels, draw)
    return (mixed * (white / WHITE)).round().to(torch.uint8)


def chained(x: Tensor, draw: torch.Generator) -> Tensor:
    """Each image after one to DEPTH random operations."""
    depth = torch.randint(1, DEPTH + 1, (len(x),), generator=draw)
    for done in range(DEPTH):
        rows = (depth > done).nonzero()[:, 0]
        x = x.index_copy(0, rows, randomly_changed(x[rows], SEVERITY, draw))
    return x
