"""Optimisers, weight-decay groups and learning-rate schedules, as a recipe names them."""

from collections.abc import Callable
from math import cos, pi

from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from ova.errors import pick
from ova.training.classifier import Classifier
from ova.training.recipe import Recipe

# Fused: one pass over each tensor instead of ten, which for a large embedding table is half a step.
OPTIMISERS: dict[str, Callable[[list[dict[str, object]], Recipe], Optimizer]] = {
    "sgd": lambda groups, r: SGD(
        groups, r.lr, momentum=r.momentum, nesterov=r.momentum > 0, fused=True
    ),
    "adam": lambda groups, r: Adam(groups, r.lr, betas=(r.momentum, 0.999), eps=r.eps, fused=True),
    "adamw": lambda groups, r: AdamW(
        groups, r.lr, betas=(r.momentum, 0.999), eps=r.eps, fused=True
    ),
}


def optimiser(net: Classifier, recipe: Recipe) -> Optimizer:
    """The recipe's optimiser: weight decay acts on weight matrices, not on biases and norms."""
    parts = [(net.backbone, 1.0), (net.head, recipe.head_lr)]
    if recipe.head_lr == 1:
        parts = [(net, 1.0)]
    groups = [group for part, factor in parts for group in grouped(part, recipe, factor)]
    return pick(OPTIMISERS, recipe.optimiser, "optimiser")(groups, recipe)


def grouped(part: nn.Module, recipe: Recipe, factor: float) -> list[dict[str, object]]:
    """The parameters of a part of the network, those that decay first; `factor` is of the learning rate."""
    weights = [p for p in part.parameters() if p.ndim >= 2]
    others = [p for p in part.parameters() if p.ndim < 2]
    decays = ((weights, recipe.weight_decay), (others, 0.0))
    return [
        {"params": params, "weight_decay": decay, "factor": factor}
        for params, decay in decays
        if params
    ]


def _steps(at: float, _: float, recipe: Recipe) -> float:
    return recipe.decay_by ** sum(at >= when for when in recipe.decay_at)


# Each gives the factor at a moment `at` of `epochs`, both counted in epochs after the warm-up's end.
SCHEDULES: dict[str, Callable[[float, float, Recipe], float]] = {
    "constant": lambda _at, _epochs, _recipe: 1.0,
    "linear": lambda at, epochs, recipe: 1 - share(at, epochs, recipe),
    "cosine": lambda at, epochs, recipe: (1 + cos(pi * share(at, epochs, recipe))) / 2,
    "steps": _steps,
}


def share(at: float, epochs: float, recipe: Recipe) -> float:
    """How much of the time after the warm-up has passed, from 0 to 1."""
    return min(1.0, max(0.0, at - recipe.warmup) / max(epochs - recipe.warmup, 1e-9))


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int, total: int) -> float:
    """The learning rate of a step (counted from 0): linear warm-up, then the schedule."""
    at, epochs = step / steps_per_epoch, total / steps_per_epoch
    if at < recipe.warmup:
        return recipe.lr * (step + 1) / (recipe.warmup * steps_per_epoch + 1)
    return recipe.lr * SCHEDULES[recipe.schedule](at, epochs, recipe)


def set_learning_rate(rule: Optimizer, lr: float) -> None:
    """Give every parameter group its multiple of this learning rate."""
    for group in rule.param_groups:
        group["lr"] = lr * group["factor"]
