"""IsoMax+ (Macedo and Ludermir, 2021): distances between directions, with a learned scale."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.nn.distances import distances
from ova.nn.heads import LastLayer, number


class DirectionDistance(LastLayer):
    """z_k = -|s| || f / ||f|| - w_k / ||w_k|| ||, centres at random, s learned from 1."""

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.weight = nn.Parameter(torch.randn(classes, in_features))
        self.scale = nn.Parameter(number(1))

    @property
    def centres(self) -> Tensor:
        """The directions of the weights."""
        return F.normalize(self.weight, dim=-1)

    def embed(self, f: Tensor) -> Tensor:
        """The direction of the embedding, in float32 at least."""
        return F.normalize(f.to(torch.promote_types(f.dtype, torch.float32)), dim=-1)

    def forward(self, f: Tensor) -> Tensor:
        """Minus the scaled distances."""
        return -self.scale.abs() * distances(self.embed(f), self.embed(self.weight))
