"""A network starts where training goes on: from the features that training mode gives."""

from dataclasses import replace

import pytest
import torch

from ova.data import DATASETS
from ova.experiments import EXPERIMENTS
from ova.nn.formulations import FORMULATIONS
from ova.training.classifier import build, start

BASE = EXPERIMENTS["digits"].recipes[0]


def begun(formulation):
    task = DATASETS["digits"](None)
    recipe = replace(BASE, formulation=formulation)
    net = build(recipe, task)
    before = {name: value.clone() for name, value in net.backbone.state_dict().items()}
    start(net, task, recipe)
    return net, task, before


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_start_leaves_the_backbone_as_it_was(formulation):
    net, _, before = begun(formulation)
    after = net.backbone.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


@pytest.mark.parametrize("formulation", ["ova", "ova-dm", "ova-ball"])
def test_one_vs_all_starts_at_one_in_k_in_training_mode(formulation):
    net, task, _ = begun(formulation)
    with torch.no_grad():
        p = FORMULATIONS[formulation].probs(net.train()(task.prepare(task.train.x[:256])))
    assert float(p.mean()) == pytest.approx(1 / len(task.classes), rel=0.4)


def test_centres_at_class_means_know_much_before_the_first_step():
    net, task, _ = begun("ova-dm")
    with torch.no_grad():
        z = net.train()(task.prepare(task.train.x))
    assert float((z.argmax(1) == task.train.y).float().mean()) > 0.5  # chance is 0.125


def test_the_start_follows_from_the_seed():
    first, second = begun("ova-dm")[0], begun("ova-dm")[0]
    assert torch.equal(first.head.centres, second.head.centres)
