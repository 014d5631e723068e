"""A last layer with a horizon: affine logits that fall with the squared length of the embedding."""

from math import log
from typing import ClassVar

import torch
from torch import Tensor, nn

from ova.nn.formulation import one_vs_all
from ova.nn.heads import number
from ova.nn.squares import falling_squares
from ova.nn.starting import Starting, class_offsets, falling_to, positive


class Horizon(Starting):
    """z_k = w_k.(f - m) + b_k - e ||f - m||², e > 0: far from everything all K answers are no.

    An affine layer knows a direction, so that along a ray its logits grow for ever. The square
    outgrows them: wherever ||f|| grows without bound, every p_k goes to 0. It is Bayes' rule for a
    Gaussian class against a wider Gaussian around m. Mean m and unit of e are those of a first
    batch: e begins at 1 / E||f - m||², and is learned above a quarter of that. The weights begin
    at random and towards the means of their classes, the biases where p = 1 / K on average.
    """

    mean: Tensor
    unit: Tensor
    falls = True
    reach: ClassVar[float] = 1.0
    floor = 0.25  # of e, in units

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.weight = nn.Parameter(torch.randn(classes, in_features) * in_features**-0.5)
        self.bias = nn.Parameter(torch.zeros(classes))
        self.log_fall = nn.Parameter(number(0))
        self.register_buffer("mean", torch.zeros(in_features))
        self.register_buffer("unit", number(1))

    @property
    def fall(self) -> Tensor:
        """e, which begins at one unit and never falls below the floor."""
        return self.unit * (self.floor + (1 - self.floor) * self.log_fall.exp())

    @property
    def centres(self) -> Tensor:
        """Where z_k is largest: m + w_k / 2e."""
        return self.mean + self.weight / (2 * self.fall)

    def measure(self, f: Tensor, y: Tensor | None) -> dict[str, Tensor]:
        """Mean and unit of the batch, centres towards the means of their classes where known."""
        mean = f.mean(0)
        g = f - mean
        square = positive(g.square().sum(-1).mean())
        centres = square.sqrt() * self.weight.to(f.dtype)
        if y is not None:
            centres += class_offsets(g, y, self.classes)
        unit = 1 / square
        weight, bias = 2 * unit * centres, f.new_zeros(self.classes)
        bias += shift_to(1 / self.classes, falling_squares(g, weight, bias, unit, self.reach))
        start = {"mean": mean, "unit": unit, "weight": weight, "bias": bias}
        return {**start, "log_fall": torch.zeros_like(self.log_fall)}

    def logits(self, f: Tensor) -> Tensor:
        """A linear layer and one norm; in float32 at least, because large numbers cancel here."""
        width = torch.promote_types(f.dtype, torch.float32)
        if f.is_meta:  # a shape is all there is, and no autocast for it
            return f.new_empty(*f.shape[:-1], self.classes, dtype=width)
        with torch.autocast(f.device.type, enabled=False):
            g, w, b, e = (x.to(width) for x in (f, self.weight, self.bias, self.fall))
            return falling_squares(g - self.mean.to(width), w, b, e, self.reach)


def shift_to(goal: float, z: Tensor) -> Tensor:
    """What must be added to logits for a mean probability of `goal` (at most 1/2).

    >>> shift_to(0.25, torch.zeros(2, 2)).exp()  # p / (1 - p) = 1/3
    tensor(0.3333)
    """
    top, bottom = -z.min(), -z.max() - log(1 / goal)
    return top - falling_to(goal, lambda x: torch.sigmoid(z + top - x), top - bottom)


FORMULATION = one_vs_all("affine logits less e ||f - m||², sigmoid", Horizon)
