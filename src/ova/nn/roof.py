"""The ball with a roof: its bounded embedding, and none far out where the bound hides how far."""

import torch
from torch import Tensor

from ova.nn.ball import Ball
from ova.nn.formulation import one_vs_all


class Roof(Ball):
    """z_k = r - s ||e - w_k|| - t ||f - m||² / (D v), with the e and the floor v of the ball.

    The bound leaves a direction and forgets how long f is. The roof remembers it: among the
    embeddings of training it hardly counts (t = .1, and v is ten variances of a first batch, of
    which m is the mean), far out it takes every logit down.
    """

    mean: Tensor
    falls = True
    steepness = 0.1  # t

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.register_buffer("mean", torch.zeros(in_features))

    def measure(self, f: Tensor, y: Tensor | None) -> dict[str, Tensor]:
        """As the ball, around the mean of the batch."""
        return {**super().measure(f, y), "mean": f.mean(0)}

    def logits(self, f: Tensor) -> Tensor:
        """Those of the ball, less the roof."""
        z = super().logits(f)
        square = (f.to(z.dtype) - self.mean).square().sum(-1, keepdim=True)
        return z - (self.steepness / self.in_features) * self.rate.square() * square


FORMULATION = one_vs_all("ova-ball less .1 ||f - m||² / D v: none far out", Roof)
