"""What a recipe does to training examples, epoch by epoch."""

from dataclasses import replace

import pytest
import torch
from lightning_fabric import Fabric

from ova.data.augmentation import CropFlip
from ova.data.task import Augmentation, InMemory, Task, unchanged
from ova.errors import BadInput
from ova.training.augment import MIXES, changes
from ova.training.engine import Machine
from ova.training.loop import fit
from ova.training.recipe import Recipe

ROWS = torch.arange(40)
BASE = Recipe(
    experiment="e",
    data="cifar10",
    model="quick",
    formulation="ova",
    epochs=6,
    lr=0.01,
    batch_size=8,
)


USUAL = CropFlip()


def task_of(augment: Augmentation = USUAL, shape: tuple[int, ...] = (3, 16, 16)) -> Task:
    draw = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (len(ROWS), *shape), dtype=torch.uint8, generator=draw)
    examples = InMemory(pixels, ROWS % 2)
    prepare = lambda x: x.float() / 255  # noqa: E731
    return Task(("a", "b"), shape, examples, examples, {}, prepare=prepare, augment=augment)


def shown(recipe: Recipe, task: Task, epoch: int) -> torch.Tensor:
    """All examples as an epoch shows them, with the noise of that epoch."""
    noise = torch.Generator().manual_seed(epoch)
    return changes(task, recipe)(task.train.x[ROWS], ROWS, epoch, noise)  # type: ignore[attr-defined]


def test_nothing_asked_is_what_the_data_set_does():
    task = task_of()
    usual = task.augment(task.train.x, torch.Generator().manual_seed(3))  # type: ignore[attr-defined]
    assert torch.equal(shown(BASE, task, 3), usual)
    assert torch.equal(shown(replace(BASE, augment="none"), task, 3), task.train.x)  # type: ignore[attr-defined]


def test_alternate_flips_show_every_image_both_ways_in_two_epochs():
    still = task_of(CropFlip(pad=0))
    recipe = replace(BASE, flips="alternate")
    epochs = [shown(recipe, still, epoch) for epoch in range(4)]
    assert torch.equal(epochs[0], epochs[2])
    assert torch.equal(epochs[1], epochs[3])
    assert torch.equal(epochs[1], epochs[0].flip(-1))
    mirrored = (epochs[0] != still.train.x).flatten(1).any(1)  # type: ignore[attr-defined]
    assert 5 < int(mirrored.sum()) < 35  # by chance in the first epoch, from the seed
    other = shown(replace(recipe, seed=1), still, 0)
    assert not torch.equal(other, epochs[0])


def test_alternate_flips_leave_alone_what_must_not_be_mirrored():
    still = task_of(CropFlip(pad=0, flip=False))
    recipe = replace(BASE, flips="alternate")
    assert all(torch.equal(shown(recipe, still, e), still.train.x) for e in (0, 1))  # type: ignore[attr-defined]


def test_crop_and_border_are_those_of_the_recipe():
    usual = CropFlip(pad=2, reflect=True)
    task = task_of()
    expected = usual(task.train.x, torch.Generator().manual_seed(1))  # type: ignore[attr-defined]
    assert torch.equal(shown(replace(BASE, crop=2, border="reflect"), task, 1), expected)


def test_images_grow_over_the_epochs_to_what_they_are():
    recipe, task = replace(BASE, sides=(10, 12, 16)), task_of()
    sides = [shown(recipe, task, epoch).shape[-2:] for epoch in range(6)]
    assert sides == [(10, 10), (10, 10), (12, 12), (12, 12), (16, 16), (16, 16)]
    flat = task_of(unchanged)
    constant = replace(
        flat, train=InMemory(torch.full((40, 3, 16, 16), 77, dtype=torch.uint8), ROWS)
    )
    assert (shown(recipe, constant, 0) == 77).all()


@pytest.mark.parametrize("mix", MIXES)
def test_mixtures_come_after_the_usual_changes(mix: str):
    task, recipe = task_of(), replace(BASE, augment=mix)
    noise = torch.Generator().manual_seed(2)
    usual = task.augment(task.train.x, noise)  # type: ignore[attr-defined]
    assert torch.equal(shown(recipe, task, 2), MIXES[mix](usual, noise))
    assert not torch.equal(shown(recipe, task, 2), shown(recipe, task, 3))
    dim = replace(task, train=InMemory(task.train.x // 16, ROWS % 2), white=16)  # type: ignore[attr-defined]
    assert int(shown(recipe, dim, 0).max()) <= 16


def test_only_images_can_be_mixed():
    with pytest.raises(BadInput, match="'augmix' is for images"):
        changes(task_of(unchanged, shape=(7,)), replace(BASE, augment="augmix"))


def test_training_sees_them(tmp_path):
    task, seen = task_of(), []

    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append(x.shape[-1])
        return task.prepare(x)

    looking = replace(task, prepare=look)
    recipe = replace(BASE, epochs=2, sides=(10, 16))
    for _ in fit(Fabric(accelerator="cpu", devices=1), looking, recipe, tmp_path, Machine()):
        pass
    # The start of the head, five batches and the validation of each epoch.
    assert seen == [16, *[10] * 5, 16, *[16] * 5, 16]


@pytest.mark.parametrize(
    ("changed", "task", "said"),
    [
        ({"crop": 2}, task_of(unchanged), "cropped at random"),
        ({"flips": "alternate"}, task_of(unchanged), "cropped at random"),
        ({"border": "reflect"}, task_of(unchanged), "cropped at random"),
        ({"sides": (16,)}, task_of(unchanged, (7,)), "only images have sides"),
    ],
)
def test_what_the_data_cannot_do_is_refused(changed, task, said):
    with pytest.raises(BadInput, match=said):
        changes(task, replace(BASE, **changed))
