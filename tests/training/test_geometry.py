"""Class centres among embeddings: distances in units of the nearest neighbour, from a bounded look."""

import json

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


def looked_at(x: torch.Tensor, y: torch.Tensor, classes: int) -> tuple[list, list]:
    """What is measured on the inputs themselves as embeddings; it must be JSON."""
    net = Classifier(Backbone(nn.Identity(), 2), Distance(2, classes)).eval()
    examples = InMemory(x, y)
    names = tuple(map(str, range(classes)))
    task = Task(names, (2,), examples, examples, {}, prepare=lambda x: x)
    rows, pictures = geometry.embedding_rows(net, task)
    json.dumps([rows, pictures], allow_nan=False)
    return rows, pictures


def test_rare_classes_that_are_not_looked_at_change_nothing() -> None:
    """Two large classes, and eight of four rows each between the rows that are looked at."""
    y = torch.arange(40_000) // 4 % 2
    for k in range(2, 10):
        y[torch.arange(4) * 4 + 1 + 40 * k] = k  # every fourth row is looked at
    x = torch.stack([10.0 * y, torch.randn(len(y), generator=torch.manual_seed(0))], 1)
    (mean, largest), (drawn,) = looked_at(x, y, 10)
    assert 0 < mean["value"] < largest["value"]
    assert (mean["n"], set(mean)) == (10_000, {"dataset", "metric", "value", "n"})
    assert drawn["columns"]["kind"].count("centre") == 10


@pytest.mark.parametrize("large", [torch.inf, torch.nan, 1e38])
def test_embeddings_that_are_no_numbers_are_left_out(large: float) -> None:
    x, y = torch.tensor([[0.0, 0], [1, 0], [2, 0], [3, 1]]), torch.tensor([0, 1, 0, 1])
    x[0] = large
    (mean, _), pictures = looked_at(x, y, 2)
    assert mean["n"] == (4 if large == 1e38 else 3)
    assert mean["value"] is not None
    assert len(pictures) == 1


def test_what_cannot_be_measured_is_null_with_a_reason() -> None:
    y = torch.tensor([0, 1, 0, 1])
    same, no_numbers = torch.ones(4, 2), torch.full((4, 2), torch.nan)
    for x, why, count in ((same, "the same mean", 1), (no_numbers, "fewer than two classes", 0)):
        rows, pictures = looked_at(x, y, 2)
        assert [row["value"] for row in rows] == [None, None]
        assert all(why in row["why"] for row in rows)
        assert len(pictures) == count


def test_thousands_of_means_are_compared_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = torch.Generator().manual_seed(0)
    centres, means = torch.randn((2, 50, 3), generator=draw, dtype=torch.float64)
    whole = geometry.centre_offsets(centres, means)
    monkeypatch.setattr(geometry, "PIECE", 7)
    assert torch.allclose(geometry.centre_offsets(centres, means), whole, atol=0)
