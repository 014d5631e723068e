"""What a recipe does to training examples: what the data set does, flips in turns, mixtures, smaller images."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor

from ova.data.augmentation import CropFlip
from ova.data.augmix import augmix
from ova.data.pixmix import pixmix
from ova.data.task import Augmentation, Task, unchanged
from ova.errors import BadInput
from ova.training.drawing import seed_of
from ova.training.recipe import Recipe

MIXES: dict[str, Callable[..., Tensor]] = {"augmix": augmix, "pixmix": pixmix}
# From a batch, its row numbers, the epoch (counted from 0) and noise.
Change = Callable[[Tensor, Tensor, int, torch.Generator], Tensor]


def changes(task: Task, recipe: Recipe) -> Change:
    """All that happens to a batch of training examples before it is prepared."""
    change, mix = chosen(task, recipe), mixing(task, recipe)

    def changed(x: Tensor, rows: Tensor, epoch: int, noise: torch.Generator) -> Tensor:
        if recipe.augment != "none":
            x = mix(change(x, rows, epoch, noise), noise)
        side = side_of(recipe, epoch)
        return resized(x, side) if side and side != x.shape[-1] else x

    return changed


def chosen(task: Task, recipe: Recipe) -> Change:
    """The data set's own change of examples, with the recipe's crops and flips."""
    usual, wish = task.augment, (recipe.crop, recipe.border, recipe.flips)
    if recipe.sides and len(task.shape) != 3:
        raise BadInput(f"sides = {recipe.sides}: only images have sides; leave it out")
    if wish == (0, "black", "random"):
        return lambda x, _rows, _epoch, noise: usual(x, noise)
    if not isinstance(usual, CropFlip):
        raise BadInput(
            f"crop, border and flips are for images that are cropped at random; "
            f"those of {recipe.data} are not, leave them out"
        )
    move = replace(usual, pad=recipe.crop or usual.pad, reflect=recipe.border == "reflect")
    if recipe.flips == "random":
        return lambda x, _rows, _epoch, noise: move(x, noise)
    draw = torch.Generator().manual_seed(seed_of(recipe.seed, -1))
    first = torch.randint(0, 2, (len(task.train),), generator=draw)
    # Each image the other way round than in the epoch before: two epochs show both, no chance.
    return lambda x, rows, epoch, noise: move(x, noise, (first[rows] + epoch) % 2)


def mixing(task: Task, recipe: Recipe) -> Augmentation:
    """What comes after the usual crops and flips: images mixed with others, or nothing."""
    mix = MIXES.get(recipe.augment)
    if mix is None:
        return unchanged
    if len(task.shape) != 3:
        raise BadInput(
            f"augment = {recipe.augment!r} is for images, which {recipe.data} has none of; "
            f"usual and none are for everything"
        )
    return partial(mix, white=task.white)


def side_of(recipe: Recipe, epoch: int) -> int:
    """The side of the images of an epoch (counted from 0), 0 for the side that they have.

    >>> recipe = Recipe(experiment="e", data="cifar10", model="quick", formulation="ova",
    ...                 epochs=6, lr=1, sides=(24, 28, 32))
    >>> [side_of(recipe, epoch) for epoch in range(6)]
    [24, 24, 28, 28, 32, 32]
    """
    if not recipe.sides:
        return 0
    return int(recipe.sides[min(epoch, recipe.epochs - 1) * len(recipe.sides) // recipe.epochs])


def resized(x: Tensor, side: int) -> Tensor:
    """Square images in another size; each new pixel is a mean over the area that it covers."""
    return F.interpolate(x, (side, side), mode="bilinear", antialias=True)
