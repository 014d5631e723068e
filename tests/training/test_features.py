"""Features that are kept: the encoder's own, taken once per input, whole after a kill, never more than fit."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from ova.data.task import InMemory, Task
from ova.errors import BadInput
from ova.models.backbone import Backbone
from ova.training import features
from ova.training.features import embedded
from ova.training.recipe import Recipe

WIDTH, PAD = 5, 0


class Counting(nn.Module):
    """A mean over embeddings that counts the rows it is given."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.rows = nn.Embedding(50, WIDTH), 0

    def forward(self, x: Tensor) -> Tensor:
        self.rows += len(x)
        mask = (x != PAD).unsqueeze(-1)
        f: Tensor = (self.table(x) * mask).sum(1) / mask.sum(1)
        return f


def sentences(seed: int, count: int, length: int = 9) -> InMemory:
    draw = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, length - 1, (count,), generator=draw)
    x = torch.randint(1, 50, (count, length), generator=draw)
    x = torch.where(torch.arange(length) < lengths[:, None], x, PAD)
    return InMemory(x, torch.arange(count) % 3, lengths)


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    monkeypatch.setenv("OVA_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("OVA_FEATURES", raising=False)
    monkeypatch.setattr(features, "BLOCK", 16)
    (tmp_path / "encoder").mkdir()
    (tmp_path / "encoder/config.json").write_text('{"model_type": "bert"}')
    (tmp_path / "encoder/model.safetensors").write_bytes(b"weights")
    made = {"experiment": "toy", "data": "toy", "formulation": "ova", "epochs": 1, "lr": 1.0}
    return Recipe(model=f"frozen:{tmp_path / 'encoder'}", optimiser="lbfgs", **made)  # type: ignore[arg-type]


def task_of(train: InMemory, **more: InMemory) -> Task:
    sets = {name: partial(lambda part: part, part) for name, part in more.items()}
    return Task(("a", "b", "c"), (50, 9), train, sentences(2, 12), sets, prepare=lambda x: x)


def run(task: Task, recipe: Recipe) -> tuple[Task, Counting]:
    body = Counting()
    events = embedded(task, recipe, torch.device("cpu"), lambda: Backbone(body, WIDTH))
    try:
        while True:
            next(events)
    except StopIteration as end:
        return end.value, body


def test_features_are_those_of_the_encoder_and_a_second_time_costs_nothing(recipe: Recipe) -> None:
    task = task_of(sentences(1, 70), test=sentences(3, 20))
    first, body = run(task, recipe)
    assert body.rows == 70 + 12 + 20
    for name in ("train", "validation"):
        with torch.no_grad():  # row by row, without padding
            given = getattr(task, name)
            each = [body(x[: int(n)][None])[0] for x, n in zip(given.x, given.lengths, strict=True)]
        torch.testing.assert_close(getattr(first, name).x, torch.stack(each))
        assert torch.equal(getattr(first, name).y, given.y)
    second, body = run(task, recipe)
    assert body.rows == 0
    assert torch.equal(first.train.x, second.train.x)  # type: ignore[attr-defined]
    assert torch.equal(first.evaluations["test"]().x, second.evaluations["test"]().x)  # type: ignore[attr-defined]
    assert second.shape == (WIDTH,)


def test_only_new_rows_are_embedded_however_they_are_padded(recipe: Recipe) -> None:
    run(task_of(sentences(1, 30)), recipe)
    old, new = sentences(1, 30), sentences(4, 7)
    wide = torch.cat([torch.cat([new.x, old.x]), torch.zeros(37, 4, dtype=torch.long)], 1)
    lengths = torch.cat([new.lengths, old.lengths])  # type: ignore[list-item]
    more, body = run(task_of(InMemory(wide, torch.cat([new.y, old.y]), lengths)), recipe)
    assert body.rows == 7
    alone, _ = run(task_of(old), recipe)
    assert torch.equal(more.train.x[7:], alone.train.x)  # type: ignore[attr-defined]


def test_copies_of_an_input_are_embedded_once(recipe: Recipe) -> None:
    one = sentences(1, 5)
    many = InMemory(one.x.repeat(4, 1), one.y.repeat(4), one.lengths.repeat(4))  # type: ignore[union-attr]
    task, body = run(task_of(many, test=many), recipe)
    assert body.rows == 5 + 12
    assert torch.equal(task.train.x[:5], task.train.x[15:])  # type: ignore[attr-defined]


def test_after_a_kill_the_blocks_that_are_whole_count(recipe: Recipe) -> None:
    task, body = task_of(sentences(1, 70)), Counting()
    events: Iterator[object] = embedded(
        task, recipe, torch.device("cpu"), lambda: Backbone(body, WIDTH)
    )
    for _ in range(4):  # three blocks of 16 are done when the fourth is announced
        next(events)
    _, after = run(task, recipe)
    assert after.rows == 70 + 12 - 48


def test_another_encoder_has_features_of_its_own(recipe: Recipe, tmp_path: Path) -> None:
    task = task_of(sentences(1, 20))
    run(task, recipe)
    (tmp_path / "encoder/model.safetensors").write_bytes(b"other weights")
    assert run(task, recipe)[1].rows == 32
    (tmp_path / "encoder/config.json").write_text('{"model_type": "bert", "layers": 1}')
    assert run(task, recipe)[1].rows == 32


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b[:-4] + b"\0\0\x80\x7f", lambda _: b""]
)
def test_a_damaged_block_is_computed_again(damage, recipe: Recipe, tmp_path: Path) -> None:
    task = task_of(sentences(1, 16))
    before, _ = run(task, recipe)
    for path in (tmp_path / "cache/features").glob("*/*.safetensors"):
        path.write_bytes(damage(path.read_bytes()))
    after, body = run(task, recipe)
    assert body.rows == 28
    assert torch.equal(before.train.x, after.train.x)  # type: ignore[attr-defined]


def test_there_are_never_more_than_fit_and_none_where_none_are_wanted(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = tmp_path / "cache/features"

    def size() -> int:
        return sum(path.stat().st_size for path in kept.glob("*/*.safetensors"))

    monkeypatch.setenv("OVA_FEATURES", "0")
    found, _ = run(task_of(sentences(1, 40)), recipe)
    assert np.isfinite(found.train.x.numpy()).all()  # type: ignore[attr-defined]
    assert not kept.exists()
    monkeypatch.setenv("OVA_FEATURES", str(1500 / 2**30))
    run(task_of(sentences(1, 40)), recipe)
    assert 0 < size() <= 1500
    for wrong in ("much", "-1", "nan"):
        monkeypatch.setenv("OVA_FEATURES", wrong)
        with pytest.raises(BadInput, match="OVA_FEATURES is a number of gibibytes"):
            run(task_of(sentences(5, 40)), recipe)
