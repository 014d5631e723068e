"""Logits that fall with squared distances: the fused way against the definition."""

from functools import partial

import pytest
import torch
from torch import Tensor

from ova.nn import squares
from ova.nn.squares import falling_squares

REACH = pytest.mark.parametrize("reach", [1.0, 0.5, 2.0])


@pytest.fixture(autouse=True)
def fused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(squares, "SMALL", 0)


def inputs() -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(0)
    g, w = (torch.randn(n, 6, generator=draw, dtype=torch.float64) for n in (4, 5))
    b, e = torch.randn(5, generator=draw, dtype=torch.float64), torch.tensor(0.3).double()
    return tuple(x.requires_grad_() for x in (g, w, b, e))


@REACH
def test_definition(reach: float) -> None:
    g, w, b, e = inputs()
    c = w / (2 * e)
    slow = b + e * (reach * c.square().sum(-1) - (g[:, None] - c).square().sum(-1))
    torch.testing.assert_close(falling_squares(g, w, b, e, reach), slow)


@REACH
def test_first_and_second_derivatives(reach: float) -> None:
    assert torch.autograd.gradcheck(partial(falling_squares, reach=reach), inputs())
    assert torch.autograd.gradgradcheck(partial(falling_squares, reach=reach), inputs())


@REACH
def test_more_dimensions_and_no_rows(reach: float) -> None:
    g, w, b, e = inputs()
    many = falling_squares(g.reshape(2, 2, 6), w, b, e, reach)
    torch.testing.assert_close(many.reshape(4, 5), falling_squares(g, w, b, e, reach))
    assert falling_squares(g[:0], w, b, e, reach).shape == (0, 5)
