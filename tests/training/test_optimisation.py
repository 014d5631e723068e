"""Every parameter is updated once, with the decay and the learning rate that are meant for it."""

from dataclasses import replace

import pytest
import torch

from ova.experiments import EXPERIMENTS
from ova.models import model
from ova.training.classifier import Classifier, assemble
from ova.training.optimisation import OPTIMISERS, learning_rate, optimiser, set_learning_rate

RECIPE = replace(EXPERIMENTS["toy"].recipes[0], momentum=0.0)


def made(formulation: str) -> Classifier:
    return assemble(model("mlp")((2,), 0.0), formulation, classes=3, images=False)


@pytest.mark.parametrize("rule", OPTIMISERS)
@pytest.mark.parametrize("head_lr", [1, 7])
def test_every_parameter_is_in_one_group_and_only_matrices_decay(rule, head_lr):
    net = made("ova-ball")
    recipe = replace(RECIPE, optimiser=rule, head_lr=head_lr, weight_decay=0.1)
    groups = optimiser(net, recipe).param_groups
    grouped = [id(p) for group in groups for p in group["params"]]
    assert sorted(grouped) == sorted(map(id, net.parameters()))
    for group in groups:
        assert {p.ndim >= 2 for p in group["params"]} == {group["weight_decay"] > 0}


@pytest.mark.parametrize("head_lr", [0, 1, 7])
def test_the_head_moves_by_its_multiple_of_the_learning_rate(head_lr):
    net = made("ova")
    rule = optimiser(net, replace(RECIPE, head_lr=head_lr))
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    set_learning_rate(rule, 0.5)
    rule.step()
    for name, p in net.named_parameters():
        moved = 0.5 * (head_lr if name.startswith("head.") else 1)
        torch.testing.assert_close(before[name] - p.detach(), torch.full_like(p, moved))


@pytest.mark.parametrize("head_lr", [1, 7])
def test_the_biases_of_norms_move_by_their_multiple(head_lr):
    net = assemble(model("convnet-small")((1, 8, 8), 0.0), "ova", classes=3, images=True)
    norms = [m.bias for m in net.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    rule = optimiser(net, replace(RECIPE, head_lr=head_lr, bias_lr=64))
    before = {name: p.detach().clone() for name, p in net.named_parameters()}
    for p in net.parameters():
        p.grad = torch.ones_like(p)
    set_learning_rate(rule, 0.5)
    rule.step()
    assert len(norms) == 4
    for name, p in net.named_parameters():
        factor = head_lr if name.startswith("head.") else 64 if any(p is b for b in norms) else 1
        torch.testing.assert_close(before[name] - p.detach(), torch.full_like(p, 0.5 * factor))


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("constant", [0.2, 0.4, 0.6, 0.8, 1, 1, 1, 1]),
        ("linear", [0.2, 0.4, 0.6, 0.8, 1, 0.75, 0.5, 0.25]),
        ("cosine", [0.2, 0.4, 0.6, 0.8, 1, 0.853553, 0.5, 0.146447]),
        ("steps", [0.2, 0.4, 0.6, 0.8, 1, 1, 0.1, 0.1]),
    ],
)
def test_the_learning_rate_warms_up_and_then_follows_its_schedule(schedule, rates):
    recipe = replace(RECIPE, lr=1.0, warmup=1, schedule=schedule, decay_at=(1.5,))
    said = [learning_rate(recipe, step, steps_per_epoch=4, total=8) for step in range(8)]
    assert said == pytest.approx(rates, abs=1e-6)


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("linear", [0.36, 0.52, 0.68, 0.84, 1, 0.775, 0.55, 0.325]),
        ("cosine", [0.36, 0.52, 0.68, 0.84, 1, 0.868198, 0.55, 0.231802]),
    ],
)
def test_a_triangle_begins_and_ends_above_zero(schedule, rates):
    recipe = replace(RECIPE, lr=1.0, warmup=1, lr_start=0.2, lr_end=0.1, schedule=schedule)
    said = [learning_rate(recipe, step, steps_per_epoch=4, total=8) for step in range(8)]
    assert said == pytest.approx(rates, abs=1e-6)
