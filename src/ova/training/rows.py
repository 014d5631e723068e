"""Fit rows of a last layer on features: those of new classes alone, or all with what they share.

Full batches and L-BFGS; how many steps it takes is chosen by the loss on held-out rows, which is the
regularisation: early steps stay near the start.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.func import functional_call

from ova.nn.formulation import Formulation
from ova.nn.heads import LastLayer
from ova.nn.rows import of_classes

STEPS, AT_ONCE = 100, 5  # of L-BFGS at most, and between two looks at the held-out rows
PATIENCE = 3  # looks without a better loss


@dataclass(frozen=True)
class Labelled:
    """Features and the class of each row, NONE for none of them."""

    f: Tensor
    y: Tensor

    def __len__(self) -> int:
        return len(self.y)


Losses = Callable[[Sequence[Tensor], Labelled], Tensor]


def fit_rows(
    head: LastLayer, form: Formulation, new: Sequence[int], train: Labelled, held: Labelled
) -> int:
    """Fit the rows `new` of a head in place, all other numbers as they are; the steps that it took.

    One-vs-all, a row answers a question of its own: what the others say adds a constant to the loss.
    """
    if not new:
        return 0
    names, place = of_classes(head), torch.tensor(list(new))
    shared = {n: p.detach() for n, p in head.named_parameters() if n not in names}
    rows = [getattr(head, name).detach()[place].clone() for name in names]
    with torch.no_grad():
        known = {id(of): head(of.f) for of in (train, held)}  # logits of the rows that stay

    def losses(values: Sequence[Tensor], of: Labelled) -> Tensor:
        own = {**shared, **dict(zip(names, values, strict=True))}
        z = known[id(of)].index_copy(-1, place, functional_call(head, own, (of.f,)))
        return form.loss(z, of.y)

    best, steps = lowest(losses, rows, train, held)
    with torch.no_grad():
        for name, value in zip(names, best, strict=True):
            getattr(head, name)[place] = value
    return steps


def fit_all(head: LastLayer, form: Formulation, train: Labelled, held: Labelled) -> int:
    """Fit every number of a head in place, from where it is; the steps that it took."""
    names = [name for name, _ in head.named_parameters()]
    values = [p.detach().clone() for p in head.parameters()]

    def losses(values: Sequence[Tensor], of: Labelled) -> Tensor:
        whole = dict(zip(names, values, strict=True))
        return form.loss(functional_call(head, whole, (of.f,)), of.y)

    best, steps = lowest(losses, values, train, held)
    with torch.no_grad():
        for p, value in zip(head.parameters(), best, strict=True):
            p.copy_(value)
    return steps


def lowest(
    losses: Losses, start: Sequence[Tensor], train: Labelled, held: Labelled
) -> tuple[list[Tensor], int]:
    """The values along the way from the start that are best on the held-out rows, and how far it is."""
    values = [value.requires_grad_() for value in start]
    rule = torch.optim.LBFGS(values, max_iter=AT_ONCE, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        rule.zero_grad()
        loss = losses(values, train).mean()
        loss.backward()
        return loss

    def seen() -> float:
        with torch.no_grad():
            return float(losses(values, held if len(held) else train).mean())

    best, found, steps = seen(), [value.detach().clone() for value in values], 0
    for step in range(AT_ONCE, STEPS + 1, AT_ONCE):
        rule.step(closure)
        if (now := seen()) < best:
            best, found, steps = now, [value.detach().clone() for value in values], step
        elif step - steps >= PATIENCE * AT_ONCE or now != now:  # noqa: PLR0124  NaN
            break
    return found, steps
