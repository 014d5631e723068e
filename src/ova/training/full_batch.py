"""A head on features that stay: fitted to convergence on all rows at once, its regularisation chosen."""

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import inf, isfinite

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from ova.data.task import Examples, Task
from ova.errors import BadInput
from ova.files import Row
from ova.metrics import METRICS
from ova.nn.formulation import Formulation
from ova.nn.formulations import FORMULATIONS
from ova.nn.isomax_plus import DirectionDistance
from ova.predictions import Predictions
from ova.training.balance import class_weights
from ova.training.classifier import Classifier, build
from ova.training.recipe import Recipe

# Of half the squared weights, beside the mean loss of a row: from the middle to weaker ones as long as
# each is better than the one before, and to stronger ones where the first weaker one was not.
WEAKER, STRONGER = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6), (1e-1, 1.0)
ROUND = 10  # iterations between two looks at the objective
# Relative fall of the objective over a round that ends a fit: while strengths are compared, and at last.
ROUGHLY, FULLY = 2e-2, 1e-4


@dataclass(frozen=True)
class Rows:
    """All rows of a set at once, as the head takes them: features need little room."""

    f: Tensor
    y: Tensor
    counts: Tensor  # how much each counts


@dataclass(frozen=True)
class Fold:
    """A network whose head is fitted to some rows, and the rows that judge it."""

    net: Classifier
    rows: Rows
    held: Rows


Fitted = tuple[Classifier, Row]  # a network with its row of the log


def fit(task: Task, recipe: Recipe, fabric: Fabric) -> Iterator[Fitted]:
    """The head at one strength after another, each with its row of the log; the last is the one to keep.

    The objective is the mean loss of a row and the strength times half the squared weights: convex for
    affine layers with softmax or sigmoid, so that there is one answer; of other formulations it is
    what L-BFGS finds from their usual start. The strength is that with the least risk on the validation
    rows, the area under the share of errors against the share answered; of equal ones the least loss.
    `weight_decay` names a strength instead.
    """
    fold = begun(task, recipe, fabric)
    strength = yield from climbed([fold], recipe)
    yield fold.net, fitted([fold], recipe, strength, FULLY)


def begun(task: Task, recipe: Recipe, fabric: Fabric) -> Fold:
    """A network before its head is fitted, with the features of all rows."""
    net = build(recipe, task).to(fabric.device)
    check(net, task)
    x, y = every(task.train, task, fabric)
    more, of = every(task.validation, task, fabric)
    with torch.no_grad():
        net.backbone.start(x)
        f = net.backbone(x).float()
        net.head.start(f, y)
        held = Rows(net.backbone(more).float(), of, torch.ones(len(of), device=of.device))
    return Fold(net, Rows(f, y, counts(recipe, task, y)), held)


def climbed(folds: Sequence[Fold], recipe: Recipe) -> Generator[Fitted, None, float]:
    """Try strengths on all folds, and give the best one; the heads are left where it brought them."""
    best, kept = (inf, inf), recipe.weight_decay
    start = [deepcopy(fold.net.head.state_dict()) for fold in folds]
    improved = 0
    for path in () if kept else (WEAKER, STRONGER):
        for strength in path if improved < 2 else ():
            row = fitted(folds, recipe, strength, ROUGHLY)
            yield folds[0].net, row
            found = (row.get("validation_risk", inf), row.get("validation_loss", inf))
            if kept and found >= best:
                break
            best, kept = found, strength
            start = [deepcopy(fold.net.head.state_dict()) for fold in folds]
            improved += 1
    for fold, weights in zip(folds, start, strict=True):
        fold.net.head.load_state_dict(weights)
    return kept


def fitted(folds: Sequence[Fold], recipe: Recipe, strength: float, enough: float) -> Row:
    """Fit the head of every fold at one strength, and say what they reach, each on rows of its own."""
    began, form = time.perf_counter(), FORMULATIONS[recipe.formulation]
    for fold in folds:
        fit_head(fold, recipe, strength, enough)
    row: Row = {"weight_decay": strength}
    sets = {"": [fold.rows for fold in folds], "validation_": [fold.held for fold in folds]}
    for name, parts in sets.items():
        with torch.no_grad():
            z = torch.cat([fold.net.head(p.f) for fold, p in zip(folds, parts, strict=True)])
        y = torch.cat([part.y for part in parts])
        if len(y):
            row[f"{name}loss"] = float(form.loss(z, y).mean())
            row[f"{name}accuracy"] = float((z.argmax(-1) == y).float().mean())
    if len(y):
        row["validation_risk"] = risk(form, z, y)
    return {**row, "lr": recipe.lr, "seconds": round(time.perf_counter() - began, 3)}


def fit_head(fold: Fold, recipe: Recipe, strength: float, enough: float) -> None:
    """Fit the head of one network at one strength."""
    head, rows, form = fold.net.head, fold.rows, FORMULATIONS[recipe.formulation]
    matrices = [p for p in head.parameters() if p.ndim >= 2]

    def objective() -> Tensor:
        loss = (form.loss(head(rows.f), rows.y) * rows.counts).mean()
        return loss + strength / 2 * torch.stack([p.square().sum() for p in matrices]).sum()

    minimise(list(head.parameters()), objective, recipe, enough)


def risk(form: Formulation, z: Tensor, y: Tensor) -> float:
    """The area under risk against coverage of the largest p; a row of none is an error where answered."""
    said = (t.cpu().numpy() for t in (z, form.log_probs(z), y))
    value = METRICS["aurc"](Predictions.from_logits(*said, normalised=form.normalised))
    return inf if value is None else float(value)


def minimise(
    weights: list[nn.Parameter], objective: Callable[[], Tensor], recipe: Recipe, enough: float
) -> None:
    """L-BFGS on all rows until the objective no longer falls, or for so many rounds as there are epochs."""
    rule = torch.optim.LBFGS(
        weights,
        lr=recipe.lr,
        max_iter=ROUND,
        history_size=20,
        line_search_fn="strong_wolfe",
        tolerance_change=0,
        tolerance_grad=1e-9,
    )

    def closure() -> Tensor:
        rule.zero_grad()
        value = objective()
        value.backward()
        return value.detach()

    before = inf
    for _ in range(recipe.epochs):
        now = float(rule.step(closure))  # where the round began
        if not isfinite(now):
            raise BadInput(f"the loss is {now}: a larger weight_decay may help")
        if before - now <= enough * abs(now):
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
    if isinstance(net.head, DirectionDistance):  # weights that only point would shrink for ever
        raise BadInput(
            "isomax+ looks at directions alone, which no regularisation holds: add --set optimiser=adamw"
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
