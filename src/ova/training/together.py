"""Networks that answer as one: features side by side, and logits whose p is the mean of the members' p."""

from collections.abc import Sequence
from dataclasses import replace
from math import log

import torch
from torch import Tensor, nn

from ova.errors import pick
from ova.models.backbone import Backbone
from ova.nn.formulation import Formulation
from ova.nn.formulations import FORMULATIONS
from ova.nn.heads import LastLayer
from ova.training.drawing import seed_of
from ova.training.recipe import Recipe

LEAST = 1e-300  # of 1 - p: a p that is 1 in all digits still has a logit


class SideBySide(nn.Module):
    """The features of all members, one after the other."""

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, x: Tensor) -> Tensor:
        """As many times the features as there are members."""
        return torch.cat([member(x) for member in self.members], -1)


class MeanOfP(LastLayer):
    """Logits of the mean p of several heads, for whatever reads those of `softmax` or `ova`.

    Softmax: log p + the mean energy of the members, which no p depends on and scores look at.
    One-vs-all: log(p / (1 - p)); p and 1 - p are added up apart, in float64, to lose no digits.
    """

    def __init__(self, heads: Sequence[LastLayer], form: Formulation) -> None:
        super().__init__(sum(head.in_features for head in heads), heads[0].classes)
        self.members, self.form = nn.ModuleList(heads), form

    def forward(self, f: Tensor) -> Tensor:
        """The mean over the members, each with its own part of the features."""
        parts = f.split(self.in_features // len(self.members), -1)
        z = torch.stack([h(part) for h, part in zip(self.members, parts, strict=True)])
        log_p, many = self.form.log_probs(z.double()), log(len(parts))
        mean = log_p.logsumexp(0) - many
        if self.form.normalised:
            mean = mean + z.double().logsumexp(-1, keepdim=True).mean(0)
        else:
            log_not_p = (-log_p.expm1()).clamp(min=LEAST).log()
            mean = mean - (log_not_p.logsumexp(0) - many)
        return mean.to(f.dtype)


def side_by_side(backbones: Sequence[Backbone]) -> Backbone:
    """Several backbones as one."""
    return Backbone(SideBySide(backbones), sum(each.features for each in backbones))


def answering(formulation: str, members: int) -> Formulation:
    """The formulation that reads a classifier's logits: of several as one the plain one of its kind."""
    form = pick(FORMULATIONS, formulation, "formulation")
    if members == 1:
        return form
    return FORMULATIONS["softmax" if form.normalised else "ova"]


def form_of(recipe: Recipe) -> Formulation:
    """The same, of the classifier that a recipe makes."""
    return answering(recipe.formulation, recipe.members)


def members_of(recipe: Recipe) -> list[Recipe]:
    """The recipe of each member: its own seed, all else the same.

    >>> whole = Recipe(experiment="e", data="toy", model="mlp", formulation="ova", epochs=1, lr=1)
    >>> len({each.seed for each in members_of(replace(whole, members=5))})
    5
    """
    seeds = (seed_of(recipe.seed, -2, k) % 2**31 for k in range(recipe.members))
    return [replace(recipe, members=1, seed=seed) for seed in seeds]
