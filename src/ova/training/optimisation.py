"""Optimisers, weight-decay groups and learning-rate schedules, as a recipe names them."""

from collections.abc import Callable
from math import cos, pi

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
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
    parts: list[tuple[nn.Module, float]] = [(net.backbone, 1.0), (net.head, recipe.head_lr)]
    groups: list[dict[str, object]] = []
    for part, factor in parts if recipe.head_lr != 1 else [(net, 1.0)]:
        biases = norm_biases(part) if recipe.bias_lr != 1 else []
        weights = [p for p in part.parameters() if p.ndim >= 2]
        others = [p for p in part.parameters() if p.ndim < 2 and not any(p is b for b in biases)]
        for params, decay, more in (
            (weights, recipe.weight_decay, 1.0),
            (others, 0.0, 1.0),
            (biases, 0.0, recipe.bias_lr),
        ):
            if params:
                groups.append({"params": params, "weight_decay": decay, "factor": factor * more})
    return pick(OPTIMISERS, recipe.optimiser, "optimiser")(groups, recipe)


def norm_biases(part: nn.Module) -> list[nn.Parameter]:
    """What batch and layer norms add."""
    norms = (m for m in part.modules() if isinstance(m, _BatchNorm | nn.LayerNorm))
    return [norm.bias for norm in norms if norm.bias is not None]


# The factor after `at` epochs, when a share `done` of the time after the warm-up has passed.
SCHEDULES: dict[str, Callable[[float, float, Recipe], float]] = {
    "constant": lambda _done, _at, _recipe: 1.0,
    "linear": lambda done, _at, _recipe: 1 - done,
    "cosine": lambda done, _at, _recipe: (1 + cos(pi * done)) / 2,
    "steps": lambda _done, at, recipe: recipe.decay_by ** sum(at >= e for e in recipe.decay_at),
}


def learning_rate(recipe: Recipe, step: int, steps_per_epoch: int, total: int) -> float:
    """The learning rate of a step (counted from 0): linear warm-up, then the schedule."""
    at, epochs = step / steps_per_epoch, total / steps_per_epoch
    if at < recipe.warmup:
        warmup = recipe.warmup * steps_per_epoch
        return recipe.lr * (recipe.lr_start * (warmup - step) + step + 1) / (warmup + 1)
    done = min(1.0, (at - recipe.warmup) / max(epochs - recipe.warmup, 1e-9))
    factor = SCHEDULES[recipe.schedule](done, at, recipe)
    return recipe.lr * (recipe.lr_end + (1 - recipe.lr_end) * factor)


def set_learning_rate(rule: Optimizer, lr: float) -> None:
    """Give every parameter group its multiple of this learning rate."""
    for group in rule.param_groups:
        group["lr"] = lr * group["factor"]
