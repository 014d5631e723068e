"""Heads whose first centres and scale are measured on a first batch of embeddings."""

from collections.abc import Callable
from math import log
from typing import Any

import torch
from torch import Tensor, nn

from ova.errors import BadInput
from ova.nn.distances import distances
from ova.nn.heads import LastLayer, number
from ova.nn.transforms import many, transformed


class Starting(LastLayer):
    """A head whose first values are measured on a first batch.

    Call `start(f, y)` before training, with embeddings as the network in training mode gives them;
    without that, the first forward in training mode does it, not knowing the targets y. A head that
    is only evaluated never starts.

    Whether it has started is said by the buffer `started` alone, which is saved, loaded, copied and
    averaged with the weights that it speaks of.
    """

    started: Tensor
    # The buffer that was last found set, and its version then: it is not fetched from a GPU again
    # before somebody replaces it or writes to it.
    found: tuple[Tensor, int] | None = None

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        # A float, since those who average models may average their buffers too.
        self.register_buffer("started", number(0))

    def forward(self, f: Tensor) -> Tensor:
        """Logits, after the start where that has not been."""
        if self.training and f.numel() and not self.is_found() and _has_value(self.started):
            self._start_once(f)
        return self.logits(f)

    def start(self, f: Tensor, y: Tensor | None = None) -> None:
        """Set centres and scale by the embeddings f of a first batch, and its targets if known."""
        self._start(f, y)

    def measure(self, f: Tensor, y: Tensor | None) -> dict[str, Tensor]:
        """First values of parameters and buffers, from embeddings (B x D) and targets (B)."""
        raise NotImplementedError

    def logits(self, f: Tensor) -> Tensor:
        """Logits of embeddings."""
        raise NotImplementedError

    @torch.no_grad()
    def _start(self, f: Tensor, y: Tensor | None = None, unless: Tensor | None = None) -> None:
        if f.shape[-1] != self.in_features or not f.numel():
            raise BadInput(
                f"a start needs embeddings of size {self.in_features}, not {tuple(f.shape)}"
            )
        if transformed():
            raise BadInput("no head can start inside torch.func: call head.start(f) before")
        width = torch.promote_types(next(self.parameters()).dtype, torch.float32)
        f = f.detach().reshape(-1, self.in_features).to(width)
        for name, value in self.measure(f, None if y is None else y.reshape(-1)).items():
            own = getattr(self, name)
            own.copy_(value if unless is None else torch.where(unless, own, value))
        self.started.fill_(1)

    def _start_once(self, f: Tensor) -> None:
        """Start, if the buffer says that this has not been."""
        several = torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1
        if torch.compiler.is_compiling() and not several:
            self._start(f, unless=self.started > 0)  # one graph for both cases, and no look
        elif not self.started:
            if several:
                raise BadInput(
                    "each process would start from its own batch: call head.start(f) with the "
                    "same embeddings in all of them, before the model is wrapped"
                )
            self._start(f)
        self.found = (self.started, _version(self.started))

    def is_found(self) -> bool:
        """Whether the start is known to have been, without a look at the device."""
        flag, found = self.started, self.found
        if found is None or found[0] is not flag:
            return False
        return torch.compiler.is_compiling() or found[1] == _version(flag)

    def _load_from_state_dict(self, *args: Any) -> None:
        self.found = None  # a compiled graph sees no versions
        super()._load_from_state_dict(*args)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"found": None}  # a copy has versions of its own


def _version(flag: Tensor) -> int:
    """How often the flag was written to, where that is known."""
    return -1 if torch.compiler.is_compiling() or flag.is_inference() else flag._version


def _has_value(flag: Tensor) -> bool:
    """Whether there is one value to look at: on the meta device none, in an ensemble many."""
    return not (flag.is_meta or torch.compiler.is_exporting() or many(flag))


class StartedDistance(Starting):
    """z_k = -s ||f - w_k||, centres near the class means of a first batch, s fixed: p = 1/K on average.

    2 sigmoid(-s d) = 1 / K where s d = log(2 K - 1).
    """

    scale: Tensor
    falls = True
    spread = 0.1  # of the centres beside that of the embeddings: near each other they learn sooner

    def __init__(self, in_features: int, classes: int) -> None:
        super().__init__(in_features, classes)
        self.weight = nn.Parameter(torch.randn(classes, in_features) * in_features**-0.5)
        self.register_buffer("scale", number(1))

    @property
    def centres(self) -> Tensor:
        """The weights are the centres."""
        return self.weight

    def measure(self, f: Tensor, y: Tensor | None) -> dict[str, Tensor]:
        """Centres around the mean of the batch, each towards the mean of its class where known."""
        mean = f.mean(0)
        radius = positive((f - mean).square().sum(-1).mean().sqrt())
        weight = mean + self.spread * radius * self.weight
        if y is not None:
            weight += class_offsets(f - mean, y, self.classes)
        d = distances(f, weight)
        top = 4 * log(2 * self.classes - 1) / positive(d.mean())
        scale = falling_to(1 / self.classes, lambda s: 2 * torch.sigmoid(-s * d), top)
        return {"weight": weight, "scale": scale}

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
