"""Last layers: from an embedding f (... x D) to one logit z_k per class (... x K)."""

from math import log

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ova.errors import BadInput
from ova.nn.distances import distances


class LastLayer(nn.Module):
    """A last layer. `start(f, y)` gives it its first values from a first batch."""

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

    def extra_repr(self) -> str:
        """Sizes, as PyTorch prints them."""
        return f"in_features={self.in_features}, classes={self.classes}"


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


class Distance(LastLayer):
    """z_k = -||f - w_k||, with all centres w_k at zero in the beginning (Macedo et al., IsoMax).

    >>> Distance(2, 3)(torch.tensor([3.0, 4.0]))
    tensor([-5., -5., -5.], grad_fn=<NegBackward0>)
    """

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
        self.log_scale = nn.Parameter(torch.zeros(()))

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
