"""The last layer that is ours: each class a ball with a soft border around a learned centre."""

from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.nn.distances import distances
from ova.nn.formulation import one_vs_all
from ova.nn.heads import number
from ova.nn.losses import wide
from ova.nn.starting import Starting, class_offsets, falling_to, positive


class Ball(Starting):
    """z_k = r - s d_k, d_k = ||e - w_k||, e = squash(f): a class is a ball with a soft border.

    All K distances share the length of the embedding, and K - 1 negatives would punish every change
    of it; so no length exceeds a bound: e = c (f - mean(f)) / sqrt(var(f) + v), layer norm with a
    floor v well above the variance of a first batch. Known classes grow towards the bound, while an
    input that excites nothing stays short, far from all centres. The bound is low because an
    optimiser like Adam moves every number by the same amount: in a small space the centres are soon
    where they belong. They start around the mean of a first batch, towards their classes: from zero
    they would stay there where training is short, and what excites nothing would lie amid them.
    Radius r and scale s > 0 are learned; they start at s = 2 / std(d), p = 1 / K on average.
    """

    rate: Tensor
    size: float = 0.1  # of a number in the longest e
    room: float = 10.0  # v in variances of the first batch

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.weight = nn.Parameter(0.05 * self.size * torch.randn(classes, in_features))
        self.radius = nn.Parameter(number(0))
        self.log_scale = nn.Parameter(number(0))
        self.register_buffer("rate", number(1))  # 1 / sqrt(v)

    @property
    def centres(self) -> Tensor:
        """The weights are the centres."""
        return self.weight

    def embed(self, f: Tensor) -> Tensor:
        """The bounded embedding."""
        return self._squash(f, self.rate)

    def _squash(self, f: Tensor, rate: Tensor) -> Tensor:
        # Layer norm takes its floor as a plain number, so v goes into f.
        return self.size * F.layer_norm(rate * wide(f), (self.in_features,), eps=1.0)

    def measure(self, f: Tensor, y: Tensor | None) -> dict[str, Tensor]:
        """Centres around the mean of the batch, each towards the mean of its class where known."""
        rate = (self.room * positive(f.var(-1, unbiased=False).mean())).rsqrt()
        e = self._squash(f, rate)
        mean = e.mean(0)
        weight = self.weight + mean
        if y is not None:
            weight += class_offsets(e - mean, y, self.classes)
        d = distances(e, weight)
        scale = 2 / positive(d.std())
        top = scale * d.max() + log(self.classes)
        less = falling_to(1 / self.classes, lambda x: torch.sigmoid(top - x - scale * d), 2 * top)
        return {"rate": rate, "weight": weight, "log_scale": scale.log(), "radius": top - less}

    def distances(self, f: Tensor) -> Tensor:
        """Distances of the normalised embedding to the centres."""
        return distances(self.embed(f), self.weight)

    def logits(self, f: Tensor) -> Tensor:
        """The radius less the scaled distances."""
        return self.radius - self.log_scale.exp() * self.distances(f)


FORMULATION = one_vs_all("bounded embedding in balls with soft borders, sigmoid(r - s d)", Ball)
