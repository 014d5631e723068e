"""A head on features that stay: fitted to convergence on all rows at once, its regularisation chosen."""

import time
from collections.abc import Iterator
from math import inf, isfinite
from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor

from ova.data.task import Examples, Task
from ova.errors import BadInput
from ova.nn.formulations import FORMULATIONS
from ova.training.balance import class_weights
from ova.training.classifier import Classifier, build
from ova.training.recipe import Recipe

# Of half the squared weights, beside the mean loss of a row; the strongest first, so that every fit
# begins where the last one ended.
STRENGTHS = tuple(10.0 ** -(k / 2) for k in range(2, 13))
WORSE = (
    2  # strengths in turn that are worse on the validation rows, after which no weaker one is tried
)
ENOUGH = 1e-5  # relative change of the objective over a round that ends a fit
ROUND = 10  # iterations between two looks at it


def fit(task: Task, recipe: Recipe, fabric: Fabric) -> Iterator[tuple[Classifier, dict[str, Any]]]:
    """The head at one strength after another, each with its row of the log.

    The objective is the mean loss of a row and the strength times half the squared weights: convex for
    affine layers with softmax or sigmoid, so that there is one answer; of other formulations it is
    what L-BFGS finds from their usual start. `weight_decay` names one strength instead of all.
    """
    net = fabric.to_device(build(recipe, task))
    check(net, task)
    x, y = every(task.train, task, fabric)
    held, of = every(task.validation, task, fabric)
    with torch.no_grad():
        net.backbone.start(x)
        f, held = net.backbone(x).float(), net.backbone(held).float()
        net.head.start(f, y)
    weights, form = counts(recipe, task, y), FORMULATIONS[recipe.formulation]
    matrices = [p for p in net.head.parameters() if p.ndim >= 2]
    best, worse = inf, 0
    for strength in (recipe.weight_decay,) if recipe.weight_decay else STRENGTHS:
        began = time.perf_counter()

        def objective(strength: float = strength) -> Tensor:
            loss = (form.loss(net.head(f), y) * weights).mean()
            return loss + strength / 2 * torch.stack([p.square().sum() for p in matrices]).sum()

        minimise(net, objective, recipe)
        row: dict[str, Any] = {"weight_decay": strength}
        for name, inputs, target in (("", f, y), ("validation_", held, of)):
            with torch.no_grad():
                z = net.head(inputs)
                row[f"{name}loss"] = float(form.loss(z, target).mean())
                row[f"{name}accuracy"] = float((z.argmax(-1) == target).float().mean())
        yield net, {**row, "lr": recipe.lr, "seconds": round(time.perf_counter() - began, 3)}
        worse = worse + 1 if row["validation_loss"] >= best else 0
        best = min(best, row["validation_loss"])
        if worse >= WORSE:
            return


def minimise(net: Classifier, objective: Any, recipe: Recipe) -> None:
    """L-BFGS on all rows until the objective no longer falls, or for so many rounds as there are epochs."""
    rule = torch.optim.LBFGS(
        net.head.parameters(),
        lr=recipe.lr,
        max_iter=ROUND,
        history_size=20,
        line_search_fn="strong_wolfe",
        tolerance_change=0,
        tolerance_grad=1e-9,
    )

    def closure() -> Tensor:
        rule.zero_grad()
        value: Tensor = objective()
        value.backward()
        return value

    before = inf
    for _ in range(recipe.epochs):
        rule.step(closure)
        with torch.no_grad():
            now = float(objective())
        if not isfinite(now):
            raise BadInput(f"the loss is {now}: a larger weight_decay may help")
        if before - now <= ENOUGH * abs(now):
            return
        before = now


def check(net: Classifier, task: Task) -> None:
    """Refuse networks whose features move."""
    moving = any(p.requires_grad for p in net.backbone.parameters())
    if moving or len(task.shape) != 1:
        raise BadInput(
            "optimiser = lbfgs fits a last layer to features that stay, as `ova train --frozen` "
            "has them; other networks are trained with sgd, adam or adamw"
        )


def every(examples: Examples, task: Task, fabric: Fabric) -> tuple[Tensor, Tensor]:
    """All rows of a set at once, on the device: features take little room."""
    ((x, y),) = examples.batches([torch.arange(len(examples))])
    return task.prepare(x.to(fabric.device)), y.to(fabric.device)


def counts(recipe: Recipe, task: Task, y: Tensor) -> Tensor:
    """How much every row counts: by its class, or as one of none."""
    weights = torch.ones(len(y), device=y.device)
    if recipe.balance == "on":
        weights = class_weights(y.cpu(), len(task.classes)).to(y.device)[y.clamp(min=0)]
    return torch.where(y < 0, recipe.none_weight, weights)
