"""`torch.func`: gradients, per-sample gradients and ensembles, for every formulation and size."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.func import functional_call, grad, hessian, jvp, vmap

from ova.nn import distances, squares, summed_cross_entropy
from ova.nn.formulations import FORMULATIONS
from ova.nn.links import TWICE_SIGMOID
from ova.nn.modules import IGNORED, Head, Loss

EVERY = pytest.mark.parametrize("name", FORMULATIONS)
WIDTH, K, N = 6, 4, 9


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small and large batches go different ways."""
    if request.param == "large":
        for module in (distances, squares, summed_cross_entropy):
            monkeypatch.setattr(module, "SMALL", 0)


def example(name: str) -> tuple[Head, Loss, Tensor, Tensor]:
    torch.manual_seed(0)
    head, f = Head(name, WIDTH, K).double(), torch.randn(N, WIDTH, dtype=torch.double)
    y = torch.tensor([0, 1, 2, 3, -1, 0, IGNORED, 2, 3])
    head.start(f, y.clamp(min=-1))
    return head, Loss(name, "sum"), f, y


@pytest.mark.usefixtures("size")
@EVERY
def test_gradients_of_all_and_of_each_example(name: str) -> None:
    head, loss, f, y = example(name)
    weights: dict[str, Any] = dict(head.named_parameters())

    def value(weights: dict[str, Tensor], f: Tensor, y: Tensor) -> Tensor:
        total: Tensor = loss(functional_call(head, weights, (f,)), y)
        return total

    usual = torch.autograd.grad(value(weights, f, y), list(weights.values()))
    whole = grad(value)(weights, f, y)
    each = vmap(grad(value), in_dims=(None, 0, 0))(weights, f, y)
    for key, expected in zip(weights, usual, strict=True):
        torch.testing.assert_close(whole[key], expected)
        assert each[key].shape == (N, *expected.shape)
        torch.testing.assert_close(each[key].sum(0), expected)
        assert not each[key][6].any()  # which does not count


@pytest.mark.usefixtures("size")
@EVERY
def test_losses_of_an_ensemble(name: str) -> None:
    torch.manual_seed(0)
    z, y = -torch.rand(3, N, K), torch.arange(N) % K
    loss = Loss(name)
    many = vmap(loss, in_dims=(0, None))(z, y)
    torch.testing.assert_close(many, torch.stack([loss(one, y) for one in z]))


@EVERY
def test_a_loss_moves_along_a_direction_as_its_gradient_says(name: str) -> None:
    """Forward mode, alone and over reverse mode, by which `hessian` works."""
    torch.manual_seed(0)
    z, way = -torch.rand(N, K, dtype=torch.double), torch.randn(N, K, dtype=torch.double)
    y, loss = torch.arange(N) % (K + 1) - 1, Loss(name)
    slope = grad(loss)(z, y)
    moved = jvp(lambda z: loss(z, y), (z,), (way,))[1]
    torch.testing.assert_close(moved, (slope * way).sum())
    curved = hessian(loss)(z, y)
    step = 1e-5 * way
    expected = (grad(loss)(z + step, y) - grad(loss)(z - step, y)) / 2e-5
    torch.testing.assert_close(
        torch.einsum("ijkl,kl->ij", curved, way), expected, rtol=1e-5, atol=1e-8
    )


@pytest.mark.parametrize("d", [1e-3, 0.7, 5.0, 200.0])
def test_the_loss_of_a_distance_has_a_second_derivative(d: float) -> None:
    x = torch.tensor(d, dtype=torch.double)
    second = grad(grad(lambda d: -TWICE_SIGMOID.log_not_p(-d)))(x)
    torch.testing.assert_close(second, x.cosh() / x.sinh() ** 2)  # of -log tanh(d / 2)
