"""The last layer of a model with other classes: rows that stay, and rows fitted on stored and new features."""

import torch
from torch import Tensor

from ova.modelfolder.extend.change import Change
from ova.nn.formulation import Formulation
from ova.nn.heads import LastLayer
from ova.nn.rows import with_rows
from ova.training.rows import Labelled, fit_all, fit_rows
from ova.training.together import MeanOfP

CLAIMED = 0.1  # share of held-out rows of new classes that rows which stayed may answer


def chosen(
    head: LastLayer,
    form: Formulation,
    change: Change,
    train: Labelled,
    held: Labelled,
    refit: bool | None,
) -> tuple[LastLayer, str]:
    """The head with its new rows, and a word where all rows were fitted or should be.

    Unasked, all are fitted where the rows that stayed answer too many held-out rows of new classes,
    and the held-out rows are then answered better.
    """
    found = changed(head, form, change, train, held, bool(refit))
    new, taken = claimed(found, change, held)
    if refit or taken <= CLAIMED * new:
        return found, ""
    said = f"of {new} validation rows of new classes {taken} are answered by rows of the head that stayed as they were"
    if refit is not None:
        return found, f"{said}; --refit fits all rows"
    whole = changed(head, form, change, train, held, True)
    was, now = right(found, held), right(whole, held)
    if now <= was:
        return (
            found,
            f"{said}; to fit all rows did not help (validation accuracy {now:.3f}, {was:.3f} without)",
        )
    told = f"so all rows were fitted (validation accuracy {now:.3f}, {was:.3f} without); --no-refit keeps them"
    return whole, f"{said}, {told}"


@torch.no_grad()
def claimed(head: LastLayer, change: Change, held: Labelled) -> tuple[int, int]:
    """How many held-out rows are of new classes, and how many of these are answered with old ones."""
    fresh = torch.tensor(change.new, dtype=torch.long)
    new = torch.isin(held.y, fresh)
    if not new.any():
        return 0, 0
    return int(new.sum()), int((~torch.isin(head(held.f[new]).argmax(1), fresh)).sum())


@torch.no_grad()
def right(head: LastLayer, held: Labelled) -> float:
    """The accuracy on the held-out rows of the classes."""
    inside = held.y >= 0
    return float((head(held.f[inside]).argmax(1) == held.y[inside]).double().mean())


def changed(
    head: LastLayer, form: Formulation, change: Change, train: Labelled, held: Labelled, whole: bool
) -> LastLayer:
    """The head for the classes of after.

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
        return MeanOfP(each, form).eval()
    found = with_rows(head, change.old, train.f, train.y).train()  # as the loss was trained
    if whole:
        fit_all(found, form, train, held)
    else:
        fit_rows(found, form, change.new, train, held)
    return found.eval()


def part_of(rows: Labelled, member: int, count: int) -> Labelled:
    """The rows with the features of one network of several."""
    part: Tensor = torch.chunk(rows.f, count, -1)[member]
    return Labelled(part, rows.y)
