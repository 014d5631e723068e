"""`Head` and `Loss`: last layer and loss of a formulation as PyTorch modules, for a loop of your own."""

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ova.errors import BadInput, pick
from ova.nn.formulations import FORMULATIONS
from ova.nn.gains import Gains, gently, measured
from ova.nn.soft import is_soft, soft_loss
from ova.nn.starting import Starting
from ova.nn.transforms import transformed

IGNORED = -100  # the label by which PyTorch marks rows that do not count
# (one loss per row, 0 where it does not count; how many count) -> what is given back
REDUCTIONS: dict[str, Callable[[Tensor, Tensor | int], Tensor]] = {
    "mean": lambda losses, count: losses.sum() / count,
    "sum": lambda losses, _: losses.sum(),
    "none": lambda losses, _: losses,
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
        self.gains: Gains | None = None  # of the gradients, measured in the first batch

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
        layer = self.layer
        if not (self.training and torch.is_grad_enabled() and isinstance(layer, Starting)):
            return layer(f)  # type: ignore[no-any-return]
        if self.gains is None or not layer.is_found():
            z: Tensor = layer(f)  # starts it
            if torch.compiler.is_compiling() or transformed() or not layer.is_found():
                return z
            self.gains = self.gains or measured(layer, f)
        return gently(layer, f, self.gains)

    def extra_repr(self) -> str:
        """The name of the formulation."""
        return repr(self.formulation)


class Loss(nn.Module):
    """The loss of a formulation on logits z (... x K), or on a model's output that has them.

    The classes are the last axis, where `F.cross_entropy` has them on axis 1. A target is a class
    0 ... K - 1, -1 for none of the K, or -100 for a row that does not count; or all are shares of the
    classes, (... x K), whose missing part is none of them. `weight` has a number per class by which its
    rows count more, as in `nn.CrossEntropyLoss`; the mean is then the weighted one.

    >>> loss = Loss("ova")
    >>> z = torch.zeros(2, 3)
    >>> loss(z, torch.tensor([0, 2])), loss.probs(z)[0]
    (tensor(2.0794), tensor([0.5000, 0.5000, 0.5000]))
    """

    weight: Tensor | None

    def __init__(
        self,
        formulation: str,
        reduction: Literal["mean", "sum", "none"] = "mean",
        label_smoothing: float = 0.0,
        weight: Tensor | None = None,
    ) -> None:
        super().__init__()
        if weight is not None and (weight.dim() != 1 or not bool((weight >= 0).all())):
            raise BadInput("weight has one number per class, none below 0")
        self.register_buffer("weight", weight, persistent=False)
        if not 0 <= label_smoothing < 1:
            raise BadInput(f"label_smoothing is at least 0 and below 1, not {label_smoothing}")
        pick(FORMULATIONS, formulation, "formulation")
        pick(REDUCTIONS, reduction, "reduction")
        self.formulation, self.reduction = formulation, reduction  # names alone can be pickled
        self.label_smoothing = label_smoothing

    def forward(
        self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None
    ) -> Tensor:
        """Losses of the examples, reduced; 0 for those that do not count.

        With `num_items_in_batch`, which the `Trainer` of transformers gives when it accumulates
        gradients, the mean is their sum divided by that.
        """
        z = logits(outputs)
        check_types(z, labels)
        # Left out when zero: a formulation may have a smoothing of its own.
        more = {"smoothing": self.label_smoothing} if self.label_smoothing else {}
        loss = FORMULATIONS[self.formulation].loss
        if is_soft(z, labels):
            counts = self.counts(z, labels)
            losses = soft_loss(loss, z, labels, more)
        else:
            y = fitting(labels, z, certain=z is not outputs)
            counted = y != IGNORED
            y = y.masked_fill(~counted, 0)
            losses = torch.where(counted, loss(z, y, **more), 0.0)
            counts = counted * self.counts(z, y)
        if self.weight is not None:
            losses = losses * counts
        count = counts.sum() if num_items_in_batch is None else num_items_in_batch
        return REDUCTIONS[self.reduction](losses, count)

    def counts(self, z: Tensor, y: Tensor) -> Tensor:
        """How much each row counts: by the weight of its class, of soft targets by their mean weight."""
        weight = self.weight
        if weight is None:
            return torch.ones(z.shape[:-1], dtype=torch.long, device=z.device)
        if weight.shape != z.shape[-1:]:
            raise BadInput(f"{len(weight)} weights, but the logits have {z.shape[-1]} classes")
        if is_soft(z, y):
            return y @ weight.to(y.dtype) + (1 - y.sum(-1))
        inside = (y >= 0) & (y < len(weight))  # others are named by the loss
        return torch.where(inside, weight[torch.where(inside, y, 0).long()], 1)

    def probs(self, outputs: Any) -> Tensor:
        """The probabilities p_k; those of a one-vs-all formulation do not sum to one."""
        return FORMULATIONS[self.formulation].probs(logits(outputs))

    def log_probs(self, outputs: Any) -> Tensor:
        """The logarithms of those, with all their digits near zero."""
        return FORMULATIONS[self.formulation].log_probs(logits(outputs))

    def extra_repr(self) -> str:
        """What the loss was made with."""
        return f"{self.formulation!r}, reduction={self.reduction!r}"


def fitting(y: Tensor, z: Tensor, certain: bool) -> Tensor:
    """Targets in the shape of the examples, also where they come flat or with an axis of one.

    Logits (N, C, C) with targets (N, C) fit both readings, ours and that of `F.cross_entropy`: so
    they are refused, unless it is `certain` that the classes come last, as in a model's output.
    """
    rows = z.shape[:-1]
    if y.shape == rows and len(rows) > 1 and z.shape[1:-1] == z.shape[2:] and not certain:
        raise BadInput(
            f"logits of shape {tuple(z.shape)} could have their classes on either axis; they are the "
            f"last here, on axis 1 for F.cross_entropy: give logits and targets of examples in a row, "
            f"shapes {(rows.numel(), z.shape[-1])} and {(rows.numel(),)}"
        )
    flat = y.shape in ((rows.numel(),), (*rows, 1))
    return y.reshape(rows) if flat else y


def check_types(z: Tensor, labels: Any) -> None:
    """Refuse what has no axis of classes, or is no tensor."""
    if not isinstance(labels, Tensor):
        raise BadInput(f"targets are a tensor, not {type(labels).__name__}: torch.as_tensor(y)")
    if not z.dim():
        raise BadInput("logits have the classes on their last axis; a single number has none")


def logits(outputs: Any) -> Tensor:
    """The logits in a tensor, a tuple that begins with them, or an output that names them."""
    if isinstance(outputs, tuple):
        outputs = outputs[0] if outputs else None
    found = outputs["logits"] if isinstance(outputs, dict) else getattr(outputs, "logits", outputs)
    if not isinstance(found, Tensor):
        raise BadInput(f"no logits in an output of type {type(outputs).__name__}")
    return found
