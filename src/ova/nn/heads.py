"""Last layers: from an embedding f (... x D) to one logit z_k per class (... x K)."""

from collections.abc import Callable
from math import log
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.errors import BadInput
from ova.nn.distances import distances


class LastLayer(nn.Module):
    """A last layer. `start(f, y)` gives it its first values from a first batch."""

    falls: ClassVar[bool] = False  # whether every logit falls without bound as ||f|| grows

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__()
        if in_features < 1 or classes < 2:
            raise BadInput(
                f"a head needs at least 1 feature and 2 classes, not {in_features} and {classes}"
            )
        self.in_features, self.classes = in_features, classes

    def start(self, f: Tensor, y: Tensor | None = None) -> None:
        """Nothing to do for a head whose start does not depend on the data."""

    @property
    def centres(self) -> Tensor | None:
        """The class centres w_k (K x D) of a head that measures distances to them."""
        return None

    def embed(self, f: Tensor) -> Tensor:
        """The embedding in the space where the centres lie."""
        return f

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Move and cast, but single numbers never below float32.

        Every logit hangs on them, and they take no room: a radius of 50 in bfloat16 is off by .1.
        """

        def careful(x: Tensor) -> Tensor:
            new = fn(x)
            narrow = not x.dim() and x.is_floating_point() and new.dtype.itemsize < 4
            return x.to(new.device, torch.float32) if narrow else new

        super()._apply(careful, recurse)
        return self

    def extra_repr(self) -> str:
        """Sizes, as PyTorch prints them."""
        return f"in_features={self.in_features}, classes={self.classes}"


def number(value: float) -> Tensor:
    """A single number of a head, in float32 at least."""
    return torch.tensor(value, dtype=torch.promote_types(torch.get_default_dtype(), torch.float32))


class Affine(LastLayer):
    """z_k = w_k.f + b_k, the usual last layer.

    `p` is the probability of every class at the start, for one-vs-all: b_k = log(p / (1 - p)).

    >>> torch.sigmoid(Affine(4, 3, p=0.1)(torch.zeros(4))).detach()
    tensor([0.1000, 0.1000, 0.1000])
    """

    def __init__(self, in_features: int, classes: int, p: float | None = None) -> None:
        super().__init__(in_features, classes)
        linear = nn.Linear(in_features, classes)  # for its usual start
        self.weight, self.bias = linear.weight, linear.bias
        if p is not None:
            nn.init.constant_(self.bias, log(p / (1 - p)))

    def forward(self, f: Tensor) -> Tensor:
        """One matrix product."""
        return F.linear(f, self.weight, self.bias)


class Rare(Affine):
    """An affine head on which every class starts at p = 1/K."""

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes, p=1 / classes)


class Even(Affine):
    """An affine head on which every class starts at p = 1/2."""

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes, p=1 / 2)


class Distance(LastLayer):
    """z_k = -||f - w_k||, with all centres w_k at zero in the beginning (Macedo et al., IsoMax).

    >>> Distance(2, 3)(torch.tensor([3.0, 4.0]))
    tensor([-5., -5., -5.], grad_fn=<NegBackward0>)
    """

    falls = True

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.weight = nn.Parameter(torch.zeros(classes, in_features))

    @property
    def centres(self) -> Tensor:
        """The weights are the centres."""
        return self.weight

    def forward(self, f: Tensor) -> Tensor:
        """Minus the distances."""
        return -distances(f, self.weight)


class ScaledDistance(Distance):
    """z_k = -s ||f - w_k||, with a learned entropic scale s > 0 that starts at 1."""

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.log_scale = nn.Parameter(number(0))

    def forward(self, f: Tensor) -> Tensor:
        """Minus the scaled distances."""
        return -self.log_scale.exp() * distances(f, self.weight)


class LogitDistance(LastLayer):
    """z_k = -||a - w_k|| for affine logits a = A f + b: how the paper's authors released it."""

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.affine, self.distance = Affine(in_features, classes), Distance(classes, classes)

    @property
    def centres(self) -> Tensor:
        """Centres in the space of the logits."""
        return self.distance.weight

    def embed(self, f: Tensor) -> Tensor:
        """The affine logits."""
        z: Tensor = self.affine(f)
        return z

    def forward(self, f: Tensor) -> Tensor:
        """Distances in the space of the logits."""
        z: Tensor = self.distance(self.affine(f))
        return z
