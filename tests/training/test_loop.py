"""Early stopping; that training resumes exactly is in test_resume.py."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from ova.training.engine import Machine, launch
from ova.training.loop import Diverged, Training, stops_early


def test_a_gradient_that_is_not_finite_is_a_divergence_also_where_it_is_cut() -> None:
    fabric, net = launch(Machine(accelerator="cpu")), torch.nn.Linear(2, 1)
    wrapped, rule = fabric.setup(net, torch.optim.SGD(net.parameters(), lr=0.1))
    (wrapped(torch.ones(1, 2)) * torch.inf).sum().backward()
    run: Any = SimpleNamespace(fabric=fabric, wrapped=wrapped, rule=rule, epoch=2)
    run.recipe = SimpleNamespace(clip=1.0)
    with pytest.raises(Diverged, match="not finite in epoch 3"):
        Training.clip(run)


def test_patience_ends_after_so_many_epochs_without_better_loss() -> None:
    def log(*losses: float) -> list[dict[str, float]]:
        return [{"validation_loss": loss} for loss in losses]

    assert not stops_early(log(), 1)
    assert not stops_early(log(3, 2, 1), 1)
    assert stops_early(log(3, 2, 2), 1)
    assert not stops_early(log(3, 2, 2), 2)
    assert stops_early(log(1, 2, 3, 4), 3)
    assert not stops_early(log(*range(1000)), 0)
