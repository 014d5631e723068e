"""A last layer that is put into a network trains where cross-entropy does, also with SGD."""

import copy
import pickle

import pytest
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn

from ova.nn.convert import convert
from ova.nn.formulations import FORMULATIONS
from ova.nn.gains import ROW, measured
from ova.nn.modules import Head
from ova.nn.starting import Starting

STARTING = [n for n in FORMULATIONS if isinstance(Head(n, 4, 3).layer, Starting)]


def digits() -> tuple[Tensor, Tensor]:
    x, y = load_digits(return_X_y=True)
    return torch.tensor(x, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(y)


def network() -> nn.Sequential:
    """Small, and without batch norm: its first features are short."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2), nn.ReLU(), nn.Flatten(), nn.Linear(72, 32), nn.ReLU(),
        nn.Linear(32, 10),
    )  # fmt: skip


@pytest.mark.parametrize("lr", [0.1, 0.03])
@pytest.mark.parametrize("formulation", ["ova-ball", "ova-dm"])
def test_a_swapped_head_trains_with_sgd_where_cross_entropy_does(
    formulation: str, lr: float
) -> None:
    torch.manual_seed(0)
    x, y = digits()
    net, loss = convert(network(), formulation)
    rule = torch.optim.SGD(net.parameters(), lr, momentum=0.9)
    for _ in range(8):
        for rows in torch.randperm(1200).split(64):
            rule.zero_grad()
            loss(net(x[rows]), y[rows]).backward()
            rule.step()
    right = (net.eval()(x[1200:]).argmax(1) == y[1200:]).float().mean()
    assert right > 0.7


@pytest.mark.parametrize("formulation", STARTING)
def test_the_logits_are_the_same_and_a_step_moves_them_by_about_its_rate(formulation: str) -> None:
    torch.manual_seed(0)
    f = (0.06 * torch.randn(64, 32)).requires_grad_()
    head = Head(formulation, 32, 10)
    head.start(f)
    z = head(f)
    assert torch.equal(z, head.layer(f))
    assert head.gains is not None
    assert all(0 < gain <= 1 for gain in head.gains)
    inputs, moved = [f, *head.parameters()], torch.zeros(len([*head.parameters()]))
    for _ in range(50):
        signs = torch.randint(2, z.shape) * 2.0 - 1
        gentle, *own = torch.autograd.grad(z, inputs, signs, retain_graph=True)
        squares = torch.stack([g.square().sum() for g in own]) / z.numel() / 50
        moved += squares / torch.tensor(head.gains[1:])  # a logit, by a step of rate 1
    assert (moved < 2).all()
    plain, *_ = torch.autograd.grad(head.layer(f), f, signs)
    length = (gentle.square().sum() / z.numel()).sqrt()
    assert length <= 1.2 * ROW
    assert torch.allclose(gentle, head.gains[0] * plain, rtol=1e-4)


def test_affine_layers_are_as_they_were_and_evaluation_measures_nothing() -> None:
    f = torch.randn(8, 4)
    affine, ball = Head("ova", 4, 3), Head("ova-ball", 4, 3)
    affine(f)
    ball.eval()(f)
    with torch.no_grad():
        ball.train()(f)
    assert affine.gains is ball.gains is None
    ball(f)
    assert ball.gains == measured(ball.layer, f)


def test_copies_and_pickles_go_on_with_the_same_gains_and_saved_weights_know_none() -> None:
    f = torch.randn(8, 4)
    head = Head("ova-ball", 4, 3)
    head(f)
    for other in (copy.deepcopy(head), pickle.loads(pickle.dumps(head))):
        assert torch.equal(other(f), head(f))
        assert other.gains == head.gains
    assert all("gain" not in name for name in head.state_dict())
    loaded = Head("ova-ball", 4, 3)
    loaded.load_state_dict(head.state_dict())
    assert torch.equal(loaded(2 * f), head(2 * f))
    assert loaded.gains is not None
