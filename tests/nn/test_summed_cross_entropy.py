"""The loss taken a few rows at a time is the one of single operations, with its gradients."""

import pytest
import torch
from torch import Tensor

from ova.nn import summed_cross_entropy as module
from ova.nn.links import SIGMOID, TWICE_SIGMOID, Link
from ova.nn.summed_cross_entropy import summed_cross_entropy

LINKS = {"sigmoid": SIGMOID, "twice sigmoid": TWICE_SIGMOID}


def examples(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Minus distances from 0 to far beyond where p rounds to 0, for both links."""
    draw = torch.Generator().manual_seed(0)
    z = -(120 * torch.rand(14, 9, dtype=torch.float64, generator=draw) ** 3).to(dtype)
    z[0, :3] = torch.tensor([0.0, -1e-7, -1e-3])
    y = torch.randint(9, (14, 1), generator=draw)
    return z, y, torch.rand(14, 1, generator=draw) < 0.7


@pytest.fixture(params=[1, 40, 2**17])
def chunked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    monkeypatch.setattr(module, "CHUNK", request.param)


def both(z: Tensor, own: Tensor, known: Tensor, link: Link) -> list[tuple[Tensor, Tensor]]:
    """Loss and gradient of both ways."""
    found = []
    for way in (summed_cross_entropy, module._by_single_operations):
        leaf = z.clone().requires_grad_()
        loss = way(leaf, own, known, link)
        weights = torch.linspace(-1, 2, loss.numel(), dtype=z.dtype).reshape(loss.shape)
        (slope,) = torch.autograd.grad((weights * loss).sum(), leaf)
        found.append((loss, slope))
    return found


@pytest.mark.usefixtures("chunked")
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_those_of_single_operations(
    link: Link, dtype: torch.dtype
) -> None:
    (loss, slope), (expected, its_slope) = both(*examples(dtype), link)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(slope, its_slope)
    assert slope.isfinite().all()


@pytest.mark.usefixtures("chunked")
def test_positive_logits_of_the_sigmoid_too() -> None:
    z, own, known = examples()
    (loss, slope), (expected, its_slope) = both(-z, own, known, SIGMOID)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(slope, its_slope)


@pytest.mark.usefixtures("chunked")
@pytest.mark.parametrize("link", LINKS.values(), ids=LINKS)
def test_leading_dimensions_and_strides_do_not_matter(link: Link) -> None:
    z, own, known = examples()
    flat = summed_cross_entropy(z, own, known, link)
    folded = summed_cross_entropy(
        z.reshape(2, 7, 9), own.reshape(2, 7, 1), known.reshape(2, 7, 1), link
    )
    turned = summed_cross_entropy(z.T.contiguous().T, own, known, link)
    torch.testing.assert_close(folded.reshape(-1), flat)
    torch.testing.assert_close(turned, flat)


@pytest.mark.usefixtures("chunked")
def test_the_gradient_has_a_gradient() -> None:
    z, own, known = examples()
    leaf = (z / 30).requires_grad_()
    assert torch.autograd.gradgradcheck(
        lambda x: summed_cross_entropy(x, own, known, SIGMOID), leaf
    )


def test_no_rows_give_no_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)
    own = torch.zeros(0, 1, dtype=torch.long)
    assert summed_cross_entropy(torch.zeros(0, 3), own, own.bool(), SIGMOID).shape == (0,)
