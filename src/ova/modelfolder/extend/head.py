"""The last layer of a model with other classes: rows that stay, and rows fitted on stored and new features."""

from collections.abc import Callable

import torch
from torch import Tensor

from ova.modelfolder.extend.change import Change
from ova.nn.formulation import Formulation
from ova.nn.heads import LastLayer
from ova.nn.rows import with_rows
from ova.training.rows import Labelled, fit_rows, refit
from ova.training.together import MeanOfP

Fit = Callable[[LastLayer, Formulation, Labelled, Labelled], int]


def changed(
    head: LastLayer, form: Formulation, change: Change, train: Labelled, held: Labelled, whole: bool
) -> tuple[LastLayer, int]:
    """The head for the classes of after, and the most steps that its fit took.

    Of several networks each has its own rows, on its own part of the features. `whole` fits every
    row anew from where it is.
    """
    if isinstance(head, MeanOfP):
        form, count = head.form, len(head.members)
        found = [
            changed(member, form, change, part_of(train, k, count), part_of(held, k, count), whole)
            for k, member in enumerate(head.members)
        ]
        return MeanOfP([each for each, _ in found], form).eval(), max(n for _, n in found)
    found = with_rows(head, change.old, train.f, train.y).train()  # as the loss was trained
    fit: Callable[[], int] = (
        (lambda: refit(found, form, train, held))
        if whole
        else (lambda: fit_rows(found, form, change.new, train, held))
    )
    steps = fit()
    return found.eval(), steps


def part_of(rows: Labelled, member: int, count: int) -> Labelled:
    """The rows with the features of one network of several."""
    part: Tensor = torch.chunk(rows.f, count, -1)[member]
    return Labelled(part, rows.y)
