"""What others proposed, each against a slow oracle written from its paper."""

import math

import pytest
import torch
from torch import Tensor

from ova.nn.formulations import FORMULATIONS
from ova.nn.isomax_plus import DirectionDistance
from ova.nn.t2fnorm import TrainedOnDirections


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return 3 * torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def cross_entropy(z: list[float], y: int) -> float:
    """-log softmax(z)_y with plain numbers."""
    top = max(z)
    return top + math.log(math.fsum(math.exp(v - top) for v in z)) - z[y]


def length(v: list[float]) -> float:
    return math.sqrt(math.fsum(a * a for a in v))


def scalar(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


Y = torch.tensor([0, 1, 2, 3, 0, 2])


def test_logitnorm() -> None:
    """Wei et al., 2022, equation 5: the logits over t times their length, t = .04."""
    z, form = numbers(6, 4), FORMULATIONS["logitnorm"]
    slow = [
        cross_entropy([v / (0.04 * length(row)) for v in row], y)
        for row, y in zip(z.double().tolist(), Y.tolist(), strict=True)
    ]
    torch.testing.assert_close(
        form.loss(z, Y).double(), torch.tensor(slow).double(), rtol=1e-5, atol=1e-5
    )
    torch.testing.assert_close(form.probs(z), torch.softmax(z, -1))  # as they are


def test_logitnorm_does_not_care_for_the_length_of_the_logits() -> None:
    z, form = numbers(6, 4).requires_grad_(), FORMULATIONS["logitnorm"]
    torch.testing.assert_close(form.loss(10 * z, Y), form.loss(z, Y))
    (slope,) = torch.autograd.grad(form.loss(z, Y).sum(), z)
    torch.testing.assert_close((slope * z).sum(-1), torch.zeros(6), rtol=0, atol=1e-4)


@pytest.mark.parametrize("training", [True, False])
def test_t2fnorm(training: bool) -> None:
    """Regmi et al., 2024: directions over t in training, plain features over t in prediction."""
    torch.manual_seed(0)
    head, f = TrainedOnDirections(5, 4), numbers(6, 5)
    z = head.train(training)(f)
    weights, biases = head.weight.double().tolist(), head.bias.double().tolist()
    slow = [
        [
            scalar(w, row) / (0.1 * (length(row) if training else 1)) + b
            for w, b in zip(weights, biases, strict=True)
        ]
        for row in f.double().tolist()
    ]
    torch.testing.assert_close(z.double(), torch.tensor(slow).double(), rtol=1e-5, atol=1e-4)
    loss = FORMULATIONS["t2fnorm"].loss(z, Y).double().tolist()
    assert loss == pytest.approx(
        [cross_entropy(r, y) for r, y in zip(slow, Y.tolist(), strict=True)], rel=1e-4, abs=1e-6
    )


def test_isomax_plus() -> None:
    """Macedo and Ludermir, 2021: -|s| times the distance of directions, ten times that in the loss."""
    torch.manual_seed(0)
    head, f, form = DirectionDistance(5, 4), numbers(6, 5), FORMULATIONS["isomax+"]
    with torch.no_grad():
        head.scale.fill_(-1.7)  # its sign does not count
    slow = [
        [
            -1.7 * math.dist([a / length(row) for a in row], [a / length(w) for a in w])
            for w in head.weight.double().tolist()
        ]
        for row in f.double().tolist()
    ]
    z = head(f)
    torch.testing.assert_close(z.double(), torch.tensor(slow).double(), rtol=1e-5, atol=1e-5)
    losses = [cross_entropy([10 * v for v in r], y) for r, y in zip(slow, Y.tolist(), strict=True)]
    assert form.loss(z, Y).tolist() == pytest.approx(losses, rel=1e-4, abs=1e-6)
    torch.testing.assert_close(form.probs(z), torch.softmax(z, -1))


def test_isomax_plus_starts_with_normal_prototypes_and_scale_one() -> None:
    torch.manual_seed(0)
    head = DirectionDistance(64, 50)
    assert head.scale.item() == 1
    assert head.weight.std().item() == pytest.approx(1, rel=0.05)


def test_outlier_exposure() -> None:
    """Hendrycks et al., 2019: outliers are pulled to the uniform distribution, at half the weight."""
    z, form = numbers(6, 4), FORMULATIONS["outlier-exposure"]
    y = torch.tensor([0, -1, 2, -1, 0, -1])
    slow = [
        cross_entropy(row, k) if k >= 0 else 0.5 * sum(cross_entropy(row, j) for j in range(4)) / 4
        for row, k in zip(z.tolist(), y.tolist(), strict=True)
    ]
    assert form.loss(z, y).tolist() == pytest.approx(slow, rel=1e-5)
