"""Heads whose first centres and scale are measured on a first batch of embeddings."""

from collections.abc import Callable
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from ova.errors import BadInput
from ova.nn.distances import distances
from ova.nn.heads import LastLayer


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
        radius = positive((f - mean).square().sum(-1).mean().sqrt())
        self.weight.copy_(mean + self.spread * radius * self.weight)
        if y is not None:
            self.weight.add_(class_offsets(f - mean, y, self.classes))
        d = distances(f, self.weight)
        top = 4 * log(2 * self.classes - 1) / positive(d.mean())
        self.scale.copy_(falling_to(1 / self.classes, lambda s: 2 * torch.sigmoid(-s * d), top))

    def logits(self, f: Tensor) -> Tensor:
        """Minus the scaled distances."""
        return -self.scale * distances(f, self.weight)


def falling_to(goal: float, p: Callable[[Tensor], Tensor], top: Tensor) -> Tensor:
    """Where between 0 and top the mean of a falling p reaches the goal, by halving."""
    low, high = torch.zeros_like(top), top
    for _ in range(30):
        middle = (low + high) / 2
        above = p(middle).mean() > goal
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (low + high) / 2


def class_offsets(f: Tensor, y: Tensor, classes: int) -> Tensor:
    """The mean of each class's embeddings, drawn to zero as if one more lay there.

    Random features already tell classes apart, so a head that starts near the class means has much
    of its accuracy before the first step. One example alone is not trusted with a whole centre.
    """
    known = y >= 0
    total = f.new_zeros(classes, f.shape[1]).index_add_(0, y[known], f[known])
    return total / (1 + torch.bincount(y[known], minlength=classes)[:, None])


def positive(x: Tensor) -> Tensor:
    """1 where a batch without any spread gives nothing to measure."""
    return torch.where(x > 1e-6, x, 1.0)
