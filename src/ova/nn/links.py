"""Link functions, from a logit to the probability of yes, and binary losses on them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.nn.transforms import transformed

FURTHEST = 80.0  # where 1 / sinh(d) is 0 for all purposes, and sinh(d) still a number
NEAREST = 1e-6  # a distance below this counts as this: -log(1 - p) has no bound at d = 0


@dataclass(frozen=True)
class Link:
    """How a logit becomes a probability, with both logarithms exact where p is near 0 or near 1."""

    p: Callable[[Tensor], Tensor]
    log_p: Callable[[Tensor], Tensor]
    log_not_p: Callable[[Tensor], Tensor]
    slope_yes: Callable[[Tensor], Tensor]  # of -log p
    slope_no: Callable[[Tensor], Tensor]  # of -log(1 - p)


def _log_not_sigmoid(z: Tensor) -> Tensor:
    return F.logsigmoid(-z)


def _minus_not_sigmoid(z: Tensor) -> Tensor:
    return torch.sigmoid(-z).neg_()


SIGMOID = Link(torch.sigmoid, F.logsigmoid, _log_not_sigmoid, _minus_not_sigmoid, torch.sigmoid)


def _twice_sigmoid(z: Tensor) -> Tensor:
    return 2 * torch.sigmoid(z.clamp(max=0))


def _log_twice_sigmoid(z: Tensor) -> Tensor:
    # -softplus(-z) + log 2 would cancel near z = 0, where a well trained example lies.
    z = z.clamp(max=0)
    return z - torch.log1p(torch.expm1(z) / 2)


def _log_tanh_of_half(d: Tensor) -> Tensor:
    """The value log tanh(d / 2) = -log(1 + q), q = 2 / (e^d - 1): no digits lost near d = 0 or d = inf."""
    return d.clamp(min=NEAREST).expm1_().reciprocal_().mul_(2).log1p_().neg_()


class _LogTanh(torch.autograd.Function):
    """That with its slope 1 / sinh(d), which has a derivative of its own."""

    @staticmethod
    def forward(ctx: Any, d: Tensor) -> Tensor:
        ctx.save_for_backward(d)
        return _log_tanh_of_half(d)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Tensor:
        return g / torch.sinh(ctx.saved_tensors[0].clamp(NEAREST, FURTHEST))


class _LogTanhTransformed(torch.autograd.Function):
    """The same as `torch.func` wants it, which takes twice as long to call."""

    generate_vmap_rule = True
    backward = jvp = _LogTanh.backward

    @staticmethod
    def forward(d: Tensor) -> Tensor:
        return _log_tanh_of_half(d)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)


def _log_not_twice_sigmoid(z: Tensor) -> Tensor:
    function = _LogTanhTransformed if transformed() else _LogTanh
    log_not_p: Tensor = function.apply(-z)
    return log_not_p


def _slope_of_near(z: Tensor) -> Tensor:
    return torch.where(z <= 0, _minus_not_sigmoid(z), 0.0)


def _slope_of_far(z: Tensor) -> Tensor:
    """1 / sinh(d) = 2 e^-d / (1 - e^-2d)."""
    minus = z.clamp(max=-NEAREST)
    return torch.exp(minus).mul_(-2).div_(torch.expm1(minus.mul_(2)))


# For z = -d <= 0: p = 2 / (1 + e^d) is 1 at the centre and 1 - p = tanh(d / 2).
TWICE_SIGMOID = Link(
    _twice_sigmoid, _log_twice_sigmoid, _log_not_twice_sigmoid, _slope_of_near, _slope_of_far
)


@dataclass(frozen=True)
class Binary:
    """What the answer to one question costs, when the truth is yes and when it is no."""

    yes: Callable[[Link, Tensor], Tensor]
    no: Callable[[Link, Tensor], Tensor]


def _log_yes(link: Link, z: Tensor) -> Tensor:
    return -link.log_p(z)


def _log_no(link: Link, z: Tensor) -> Tensor:
    return -link.log_not_p(z)


CROSS_ENTROPY = Binary(_log_yes, _log_no)


def focal(gamma_yes: float, gamma_no: float) -> Binary:
    """Cross-entropy that cares less for what is nearly right: -(1 - p)^g log p.

    With one exponent for both answers (Lin et al., Focal loss, 2017) or a larger one for the many
    negatives (Ridnik et al., Asymmetric loss, 2021).
    """

    def yes(link: Link, z: Tensor) -> Tensor:
        return -(gamma_yes * link.log_not_p(z)).exp() * link.log_p(z)

    def no(link: Link, z: Tensor) -> Tensor:
        return -(gamma_no * link.log_p(z)).exp() * link.log_not_p(z)

    return Binary(yes, no)


def _square_yes(link: Link, z: Tensor) -> Tensor:
    return (2 * link.log_not_p(z)).exp()


def _square_no(link: Link, z: Tensor) -> Tensor:
    return link.p(z).square()


BRIER = Binary(_square_yes, _square_no)  # (1 - p)² and p²
