"""The last layer of a model with other classes: rows that stay, and rows fitted on stored and new features."""

import torch
from torch import Tensor

from ova.modelfolder.extend.change import Change
from ova.nn.formulation import Formulation
from ova.nn.heads import LastLayer
from ova.nn.rows import with_rows
from ova.training.rows import Labelled, fit_rows, refit
from ova.training.together import MeanOfP


def changed(
    head: LastLayer, form: Formulation, change: Change, train: Labelled, held: Labelled, whole: bool
) -> tuple[LastLayer, int]:
    """The head for the classes of after, and the most steps that its fit took.

    Of several networks each has its own rows, on its own part of the features. `whole` fits every
    row anew from where it is.
    """
    if isinstance(head, MeanOfP):
        form, count = head.form, len(head.members)
        each = [
            changed(member, form, change, part_of(train, k, count), part_of(held, k, count), whole)
            for k, member in enumerate(head.members)
            if isinstance(member, LastLayer)
        ]
        return MeanOfP([member for member, _ in each], form).eval(), max(n for _, n in each)
    found = with_rows(head, change.old, train.f, train.y).train()  # as the loss was trained
    if whole:
        steps = refit(found, form, train, held)
    else:
        steps = fit_rows(found, form, change.new, train, held)
    return found.eval(), steps


def part_of(rows: Labelled, member: int, count: int) -> Labelled:
    """The rows with the features of one network of several."""
    part: Tensor = torch.chunk(rows.f, count, -1)[member]
    return Labelled(part, rows.y)
