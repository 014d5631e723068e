"""Head and loss in PyTorch's manners, for a training loop of your own."""

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from ova.errors import BadInput, pick
from ova.nn.formulations import FORMULATIONS

REDUCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": torch.mean,
    "sum": torch.sum,
    "none": lambda losses: losses,
}


class Head(nn.Module):
    """The last layer of a formulation: embeddings f (B x D) to logits z (B x K).

    >>> head = Head("ova-dm", 512, 10).eval()
    >>> z = head(torch.zeros(4, 512))
    >>> head.probs(z).shape
    torch.Size([4, 10])
    """

    def __init__(self, formulation: str, in_features: int, classes: int) -> None:
        super().__init__()
        self.formulation = formulation  # the name alone, so that a head can be pickled
        self.layer = pick(FORMULATIONS, formulation, "formulation").head(in_features, classes)

    def start(self, f: Tensor, y: Tensor | None = None) -> None:
        """Measure the first values on a first batch of embeddings, better with their targets."""
        self.layer.start(f, y)

    def probs(self, z: Tensor) -> Tensor:
        """Probabilities of logits; those of one-vs-all do not sum to one."""
        return FORMULATIONS[self.formulation].probs(z)

    def log_probs(self, z: Tensor) -> Tensor:
        """Their logarithms, with all digits near zero."""
        return FORMULATIONS[self.formulation].log_probs(z)

    def forward(self, f: Tensor) -> Tensor:
        """Logits, as the loss takes them; `head.probs(z)` makes probabilities of them."""
        z: Tensor = self.layer(f)
        return z

    def extra_repr(self) -> str:
        """The name of the formulation."""
        return repr(self.formulation)


class Loss(nn.Module):
    """The loss of a formulation on logits z (B x K) and targets y (B), -1 for none of the K.

    >>> Loss("ova")(torch.zeros(2, 3), torch.tensor([0, 2]))
    tensor(2.0794)
    """

    def __init__(
        self,
        formulation: str,
        reduction: Literal["mean", "sum", "none"] = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if not 0 <= label_smoothing < 1:
            raise BadInput(f"label_smoothing is at least 0 and below 1, not {label_smoothing}")
        self.formulation, self.reduction = formulation, reduction
        self.label_smoothing = label_smoothing
        self._loss = pick(FORMULATIONS, formulation, "formulation").loss
        self._reduce = pick(REDUCTIONS, reduction, "reduction")

    def forward(self, z: Tensor, y: Tensor) -> Tensor:
        """Losses of the examples, reduced."""
        # Left out when zero: a formulation may have a smoothing of its own.
        more = {"smoothing": self.label_smoothing} if self.label_smoothing else {}
        return self._reduce(self._loss(z, y, **more))

    def extra_repr(self) -> str:
        """What the loss was made with."""
        return f"{self.formulation!r}, reduction={self.reduction!r}"
