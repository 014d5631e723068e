"""Examples of none of the classes weigh in training what the recipe says."""

from dataclasses import replace

import pytest
import torch
from lightning_fabric import Fabric

from narrowing import there
from ova.data import DATASETS
from ova.data.task import InMemory
from ova.experiments import EXPERIMENTS
from ova.nn.formulations import FORMULATIONS
from ova.training.engine import Machine
from ova.training.loop import Tally, Training

BASE = replace(EXPERIMENTS["toy"].recipes[0], batch_size=8)


@pytest.mark.parametrize("formulation", ["softmax", "ova", "ova-ball"])
@pytest.mark.parametrize("weight", [0.0, 1.0, 3.5])
@pytest.mark.parametrize("piece", [0, 3])
def test_the_gradient_is_that_of_the_weighted_losses(formulation, weight, piece, tmp_path):
    task, fabric = DATASETS["toy"](None), Fabric(accelerator="cpu", devices=1)
    recipe = replace(BASE, formulation=formulation, none_weight=weight)
    run = Training(fabric, task, recipe, tmp_path, Machine(device_batch=piece))
    run.wrapped.train()
    assert isinstance(task.train, InMemory)
    x, y = task.train.x[:8], task.train.y[:8].clone()
    y[::3] = -1
    form = FORMULATIONS[formulation]
    run.backward(x, y, 1 / 8, Tally(fabric.device))
    said = [there(p.grad).clone() for p in run.weights]
    weights = torch.tensor([weight if target == -1 else 1.0 for target in y.tolist()])
    run.net.zero_grad()
    (weights * form.loss(run.net(task.prepare(x)), y)).mean().backward()
    for ours, expected in zip(said, [p.grad for p in run.weights], strict=True):
        torch.testing.assert_close(ours, expected, rtol=1e-3, atol=1e-5)
