"""A network starts where training goes on: from the features that training mode gives."""

from dataclasses import replace

import pytest
import torch

from ova.data import DATASETS
from ova.data.task import InMemory, Task
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


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_network_that_takes_its_start_from_data_gives_every_head_a_good_one(formulation):
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(64, 3, 16, 16, generator=draw), torch.arange(64) % 4
    examples = InMemory(x, y)
    task = Task(tuple("abcd"), (3, 16, 16), examples, examples, {}, prepare=lambda x: 3 * x)
    net = build(replace(BASE, model="quick", formulation=formulation), task)
    start(net, task, replace(BASE, batch_size=64))
    variance = net.backbone.get_submodule("white")(3 * x).square().mean()
    assert float(variance) == pytest.approx(1, rel=0.05)
    with torch.no_grad():
        loss = FORMULATIONS[formulation].loss(net.train()(3 * x), y).mean()
    assert 0 < float(loss) < 10  # chance costs 1.4 by softmax, 2.2 by four yes-or-no answers


def test_the_momentum_of_batch_norm_is_the_models_unless_the_recipe_says():
    task = DATASETS["digits"](None)
    own, said = (build(replace(BASE, norm_momentum=m), task) for m in (0.0, 0.6))
    assert [own.get_submodule(f"backbone.body.{n}").momentum for n in (1, 5, 9)] == [0.1] * 3
    assert [said.get_submodule(f"backbone.body.{n}").momentum for n in (1, 5, 9)] == [0.6] * 3


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_the_head_has_all_digits_where_the_backbone_has_few(formulation):
    net, task, _ = begun(formulation)
    with torch.no_grad():
        f = net.eval().backbone(task.prepare(task.train.x[:16])).bfloat16()
        exact = net.head(f.float())
        # No product in bfloat16, with which some processors end the program.
        net.backbone.forward = lambda _: f
        with torch.autocast("cpu", torch.bfloat16):
            z = net(f)
    assert z.dtype == torch.float32
    torch.testing.assert_close(z, exact, rtol=1e-6, atol=1e-6)
