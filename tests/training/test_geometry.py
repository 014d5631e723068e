"""Class centres among embeddings: distances in units of the nearest neighbour, from a bounded look."""

import pytest
import torch
from torch import nn

from ova.data.task import InMemory, Task
from ova.models.backbone import Backbone
from ova.nn.heads import Distance
from ova.training import geometry
from ova.training.classifier import Classifier


def sorted_by_class(count: int) -> InMemory:
    """Two classes, the second after the first, at 0 and at 10."""
    y = torch.arange(count) * 2 // count
    x = torch.stack([10.0 * y, torch.zeros(count)], 1)
    return InMemory(x, y)


def test_an_offset_is_measured_in_distances_to_the_nearest_other_mean() -> None:
    means = torch.tensor([[0.0, 0.0], [4.0, 0.0], [4.0, 8.0]])
    centres = means + torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 4.0]])
    assert geometry.centre_offsets(centres, means).tolist() == [0.25, 0, 0.5]


@pytest.mark.parametrize("count", [1, 2, 7, 40, 41])
def test_a_large_set_is_looked_at_all_over(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(geometry, "ENOUGH", 10)
    net = Classifier(Backbone(nn.Identity(), 2), Distance(2, 2)).eval()
    examples = sorted_by_class(count)
    task = Task(("a", "b"), (2,), examples, examples, {}, prepare=lambda x: x)
    f, y = geometry.embeddings(net, task, examples)
    assert min(count, 5) <= len(f) == len(y) <= 10
    assert torch.equal(f[:, 0], 10.0 * y)
    assert set(y.tolist()) == set(examples.y.tolist())
