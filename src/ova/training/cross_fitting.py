"""Heads fitted by cross-fitting: one for each fold, on the rows of all others, at one strength."""

from collections.abc import Generator
from dataclasses import dataclass, replace

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ova.data.task import Examples, InMemory, Task
from ova.training import full_batch
from ova.training.classifier import Classifier
from ova.training.recipe import Recipe
from ova.training.stages import Stage


@dataclass(frozen=True, eq=False)
class Crossed:
    """A network for each fold that has not seen it, and the strength that they share."""

    nets: tuple[Classifier, ...]
    strength: float


def cross_fit(
    task: Task, of: tuple[Tensor, Tensor], recipe: Recipe, fabric: Fabric
) -> Generator[Stage, None, Crossed]:
    """Fit a head beside every fold; `of` is the fold of each training row and of each validation row.

    Each network is standardised and fitted on the rows outside its fold. The strength is the one with
    the least risk over all validation rows, each judged by the network of its fold.
    """
    trained, judged = of
    count = int(trained.max()) + 1
    folds = [
        full_batch.begun(
            replace(
                task,
                train=part(task.train, trained != k),
                validation=part(task.validation, judged == k),
            ),
            recipe,
            fabric,
        )
        for k in range(count)
    ]
    strength = yield from shown(full_batch.climbed(folds, recipe))
    full_batch.fitted(folds, recipe, strength, full_batch.FULLY)
    return Crossed(tuple(fold.net.eval() for fold in folds), strength)


def part(examples: Examples, chosen: Tensor) -> InMemory:
    """The chosen rows of examples that are features, as examples."""
    ((x, y),) = examples.batches([torch.where(chosen)[0]])
    return InMemory(x, y)


def shown(search: Generator[full_batch.Fitted, None, float]) -> Generator[Stage, None, float]:
    """The search for a strength as stages."""
    tried, most = 0, len(full_batch.WEAKER) + 1
    while True:
        yield Stage("cross-fitting", min(tried, most), most)
        try:
            next(search)
        except StopIteration as end:
            found: float = end.value
            return found
        tried += 1
