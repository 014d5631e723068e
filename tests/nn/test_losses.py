"""Losses and links against the paper's formulas, written out slowly in float64."""

import math

import pytest
import torch
from torch import Tensor

from ova.errors import BadInput
from ova.nn.links import BRIER, CROSS_ENTROPY, NEAREST, SIGMOID, TWICE_SIGMOID, Binary, Link, focal
from ova.nn.losses import one_vs_all_loss, softmax_loss

LINKS = {"sigmoid": SIGMOID, "twice sigmoid": TWICE_SIGMOID}


def sigmoid(z: float) -> float:
    return 1 / (1 + math.exp(-z))


def slow_p(link: Link, z: float) -> float:
    return sigmoid(z) if link is SIGMOID else 2 / (1 + math.exp(-z))


def slow_one_vs_all(link: Link, z: list[float], t: list[float]) -> float:
    """The sum over the classes of the cross-entropy of a yes-or-no answer with the target."""
    p = [slow_p(link, one) for one in z]
    return -sum(
        t_k * math.log(p_k) + (1 - t_k) * math.log(1 - p_k) for t_k, p_k in zip(t, p, strict=True)
    )


def slow_softmax(z: list[float], t: list[float]) -> float:
    total = sum(math.exp(one) for one in z)
    return -sum(t_k * math.log(math.exp(one) / total) for t_k, one in zip(t, z, strict=True))


def slow_target(y: int, classes: int, smoothing: float) -> list[float]:
    return [(1 - smoothing) * (k == y) + smoothing / classes for k in range(classes)]


def logits(seed: int = 0) -> Tensor:
    """Minus distances, which suit both links."""
    return -4 * torch.rand(6, 5, dtype=torch.double, generator=torch.Generator().manual_seed(seed))


Y = torch.tensor([0, 1, 2, 3, 4, -1])


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_one_vs_all_is_the_papers_formula(link: Link, smoothing: float) -> None:
    z = logits()
    ours = one_vs_all_loss(z, Y, smoothing, link=link)
    for i, y in enumerate(Y.tolist()):
        t = [0.0] * 5 if y == -1 else slow_target(y, 5, smoothing)
        assert float(ours[i]) == pytest.approx(slow_one_vs_all(link, z[i].tolist(), t), rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax_is_the_papers_formula(smoothing: float) -> None:
    z = logits()
    ours = softmax_loss(z, Y, smoothing)
    for i, y in enumerate(Y.tolist()):
        t = [0.2] * 5 if y == -1 else slow_target(y, 5, smoothing)
        assert float(ours[i]) == pytest.approx(slow_softmax(z[i].tolist(), t), rel=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_softmax_is_pytorchs(smoothing: float) -> None:
    z, y = logits()[:5], Y[:5]
    theirs = torch.nn.functional.cross_entropy(z, y, reduction="none", label_smoothing=smoothing)
    torch.testing.assert_close(softmax_loss(z, y, smoothing), theirs)


@pytest.mark.parametrize("d", [1e-4, 0.0255, 0.5, 3.0, 15.0, 30.0, 60.0])
def test_distance_link_keeps_its_digits(d: float) -> None:
    z = torch.tensor([-d], requires_grad=True)
    of_no = -TWICE_SIGMOID.log_not_p(z)
    exact = math.log1p(2 / math.expm1(d))  # -log(1 - p), p = 2 / (1 + e^d)
    assert float(of_no.detach()) == pytest.approx(exact, rel=1e-5)
    of_no.sum().backward()
    assert z.grad is not None
    assert float(z.grad) == pytest.approx(1 / math.sinh(d), rel=1e-4)
    of_yes = -TWICE_SIGMOID.log_p(z.detach())
    assert float(of_yes) == pytest.approx(d + math.log1p(math.expm1(-d) / 2), rel=1e-5)


def test_no_distance_is_below_zero() -> None:
    """Minus a distance that rounding has made positive is a distance of 0, at which p is 1."""
    z = torch.tensor([0.0, 1e-7, 0.5, 3.0])
    assert TWICE_SIGMOID.p(z).tolist() == [1, 1, 1, 1]
    assert TWICE_SIGMOID.log_p(z).tolist() == [0, 0, 0, 0]
    assert TWICE_SIGMOID.slope_yes(z[1:]).tolist() == [0, 0, 0]


@pytest.mark.parametrize("z", [20.0, 50.0, 100.0, 1e4])
def test_a_confidently_wrong_negative_is_pulled_with_full_force(z: float) -> None:
    logit = torch.tensor([[0.0, z]], requires_grad=True)
    one_vs_all_loss(logit, torch.tensor([0])).sum().backward()
    assert logit.grad is not None
    assert float(logit.grad[0, 1]) == pytest.approx(1)


def test_a_centre_hit_by_a_wrong_example_costs_a_finite_lot() -> None:
    z = torch.tensor([[-1.0, 0.0]], requires_grad=True)
    loss = one_vs_all_loss(z, torch.tensor([0]), link=TWICE_SIGMOID)
    loss.sum().backward()
    assert 14 < float(loss.detach()) < 16
    assert z.grad is not None
    assert float(z.grad[0, 1]) == pytest.approx(1 / NEAREST, rel=1e-3)


def test_isomax_breaks_where_this_does_not() -> None:
    z = -10 * torch.tensor([[30.0, 1.0]], requires_grad=True)
    loss = softmax_loss(z, torch.tensor([0]))
    assert float(loss.detach()) == pytest.approx(290)


BINARY: dict[str, tuple[Binary, float, float]] = {
    # loss of p = 0.8 when the truth is yes, and no
    "cross-entropy": (CROSS_ENTROPY, -math.log(0.8), -math.log(0.2)),
    "focal": (focal(2, 2), -0.04 * math.log(0.8), -0.64 * math.log(0.2)),
    "asymmetric": (focal(0, 2), -math.log(0.8), -0.64 * math.log(0.2)),
    "brier": (BRIER, 0.04, 0.64),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary_losses_by_hand(name: str) -> None:
    binary, yes, no = BINARY[name]
    z = torch.tensor([math.log(4)], dtype=torch.double)  # p = 0.8
    assert float(binary.yes(SIGMOID, z)) == pytest.approx(yes)
    assert float(binary.no(SIGMOID, z)) == pytest.approx(no)
    d = torch.tensor([-math.log(1.5)], dtype=torch.double)  # 2 / (1 + 1.5) = 0.8
    assert float(binary.yes(TWICE_SIGMOID, d)) == pytest.approx(yes)
    assert float(binary.no(TWICE_SIGMOID, d)) == pytest.approx(no)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradcheck(name: str, link: Link, smoothing: float) -> None:
    z = (logits() - 0.01).requires_grad_()
    binary = BINARY[name][0]
    assert torch.autograd.gradcheck(lambda z: one_vs_all_loss(z, Y, smoothing, link, binary), z)


@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_finite_at_any_logit(name: str, link: Link, smoothing: float) -> None:
    ends = torch.tensor([0.0, 1e-30, 1e-6, 1.0, 20.0, 100.0, 1e4, 1e8])
    z = torch.stack([-ends, ends.flip(0)]).requires_grad_()
    for y in range(-1, 8):
        loss = one_vs_all_loss(z, torch.tensor([y, y]), smoothing, link, BINARY[name][0])
        (g,) = torch.autograd.grad(loss.sum(), z)
        assert loss.isfinite().all()
        assert g.isfinite().all()


@pytest.mark.parametrize("loss", [softmax_loss, one_vs_all_loss])
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.tensor([0, -2]), "target -2 is not one of the 3 classes"),
        (torch.tensor([0, 3]), "target 3 is not one of the 3 classes; 0 to 2 are, and -1"),
        (torch.tensor([0.0, 1.0]), "class numbers"),
        (torch.tensor([0]), "shape"),
        (torch.eye(3)[:2], "shape"),
    ],
)
def test_a_wrong_target_is_named(loss, y: Tensor, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        loss(torch.zeros(2, 3), y)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int32, torch.int64])
def test_any_integer_target(dtype: torch.dtype) -> None:
    assert float(softmax_loss(torch.zeros(1, 4), torch.tensor([3], dtype=dtype))) == pytest.approx(
        math.log(4)
    )


def test_the_best_probability_for_a_mixture_is_its_share() -> None:
    """Cross-entropy and Brier are proper: with a third of the answers yes, p = 1/3 costs least."""
    z = torch.linspace(-4, 4, 8001, dtype=torch.double)
    for binary in (CROSS_ENTROPY, BRIER):
        cost = binary.yes(SIGMOID, z) / 3 + 2 * binary.no(SIGMOID, z) / 3
        assert float(torch.sigmoid(z[cost.argmin()])) == pytest.approx(1 / 3, abs=1e-3)
