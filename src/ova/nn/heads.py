"""Last layers: from an embedding f (... x D) to one logit z_k per class (... x K)."""

from collections.abc import Callable
from math import log
from typing import Any

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


class Starting(LastLayer):
    """A head whose start is measured on a first batch.

    Call `start(f, y)` before training, with embeddings as the network in training mode gives them;
    without that, the first forward in training mode does it, not knowing the targets y. A head that
    is only evaluated never starts.
    """

    started: Tensor

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        # Saved, so that a loaded head does not start again. The plain attribute beside it spares
        # every step a look at the device.
        self.register_buffer("started", torch.tensor(False))
        self.waiting = True
        self.register_load_state_dict_post_hook(_look)

    def forward(self, f: Tensor) -> Tensor:
        """Logits, after the start where that has not been."""
        if self.waiting and self.training and f.numel():
            if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
                raise BadInput(
                    "each process would start from its own batch: call head.start(f) with the "
                    "same embeddings in all of them, before the model is wrapped"
                )
            self.start(f)
        return self.logits(f)

    @torch.no_grad()
    def start(self, f: Tensor, y: Tensor | None = None) -> None:
        """Set centres and scale by the embeddings f of a first batch, and its targets if known."""
        if f.shape[-1] != self.in_features or not f.numel():
            raise BadInput(
                f"a start needs embeddings of size {self.in_features}, not {tuple(f.shape)}"
            )
        self.measure(
            f.detach().reshape(-1, self.in_features).float(), None if y is None else y.reshape(-1)
        )
        self.started.fill_(True)
        self.waiting = False

    def measure(self, f: Tensor, y: Tensor | None) -> None:
        """Set the first values from embeddings (B x D) and targets (B)."""
        raise NotImplementedError

    def logits(self, f: Tensor) -> Tensor:
        """Logits of embeddings."""
        raise NotImplementedError


def _look(head: nn.Module, _: Any) -> None:
    assert isinstance(head, Starting)
    head.waiting = not bool(head.started)


class StartedDistance(Starting):
    """z_k = -s ||f - w_k||, centres near the class means of a first batch, s fixed: p = 1/K on average.

    2 sigmoid(-s d) = 1 / K where s d = log(2 K - 1).
    """

    scale: Tensor
    spread = 0.1  # of the centres beside that of the embeddings: near each other they learn sooner

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.weight = nn.Parameter(torch.randn(classes, in_features) * in_features**-0.5)
        self.register_buffer("scale", torch.ones(()))

    @property
    def centres(self) -> Tensor:
        """The weights are the centres."""
        return self.weight

    def measure(self, f: Tensor, y: Tensor | None) -> None:
        """Centres around the mean of the batch, each towards the mean of its class where known."""
        mean = f.mean(0)
        radius = _positive((f - mean).square().sum(-1).mean().sqrt())
        self.weight.copy_(mean + self.spread * radius * self.weight)
        if y is not None:
            self.weight.add_(_class_offsets(f - mean, y, self.classes))
        d = distances(f, self.weight)
        top = 4 * log(2 * self.classes - 1) / _positive(d.mean())
        self.scale.copy_(_falling_to(1 / self.classes, lambda s: 2 * torch.sigmoid(-s * d), top))

    def logits(self, f: Tensor) -> Tensor:
        """Minus the scaled distances."""
        return -self.scale * distances(f, self.weight)


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
        self.radius = nn.Parameter(torch.zeros(()))
        self.log_scale = nn.Parameter(torch.zeros(()))
        self.register_buffer("rate", torch.ones(()))  # 1 / sqrt(v)

    @property
    def centres(self) -> Tensor:
        """The weights are the centres."""
        return self.weight

    def embed(self, f: Tensor) -> Tensor:
        """The bounded embedding."""
        # Layer norm takes its floor as a plain number, so v goes into f.
        return self.size * F.layer_norm(self.rate * f, (self.in_features,), eps=1.0)

    def measure(self, f: Tensor, y: Tensor | None) -> None:
        """Centres around the mean of the batch, each towards the mean of its class where known."""
        self.rate.copy_((self.room * _positive(f.var(-1, unbiased=False).mean())).rsqrt())
        e = self.embed(f)
        mean = e.mean(0)
        self.weight.add_(mean)
        if y is not None:
            self.weight.add_(_class_offsets(e - mean, y, self.classes))
        d = self.distances(f)
        scale = 2 / _positive(d.std())
        self.log_scale.copy_(scale.log())
        top = scale * d.max() + log(self.classes)
        less = _falling_to(1 / self.classes, lambda x: torch.sigmoid(top - x - scale * d), 2 * top)
        self.radius.copy_(top - less)

    def distances(self, f: Tensor) -> Tensor:
        """Distances of the normalised embedding to the centres."""
        return distances(self.embed(f), self.weight)

    def logits(self, f: Tensor) -> Tensor:
        """The radius less the scaled distances."""
        return self.radius - self.log_scale.exp() * self.distances(f)


def _falling_to(goal: float, p: Callable[[Tensor], Tensor], top: Tensor) -> Tensor:
    """Where between 0 and top the mean of a falling p reaches the goal, by halving."""
    low, high = torch.zeros_like(top), top
    for _ in range(30):
        middle = (low + high) / 2
        above = p(middle).mean() > goal
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (low + high) / 2


def _class_offsets(f: Tensor, y: Tensor, classes: int) -> Tensor:
    """The mean of each class's embeddings, drawn to zero as if one more lay there.

    Random features already tell classes apart, so a head that starts near the class means has much
    of its accuracy before the first step. One example alone is not trusted with a whole centre.
    """
    known = y >= 0
    total = f.new_zeros(classes, f.shape[1]).index_add_(0, y[known], f[known])
    return total / (1 + torch.bincount(y[known], minlength=classes)[:, None])


def _positive(x: Tensor) -> Tensor:
    """1 where a batch without any spread gives nothing to measure."""
    return torch.where(x > 1e-6, x, 1.0)
