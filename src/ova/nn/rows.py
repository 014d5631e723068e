"""The rows of a last layer: each class has its own, so that classes come and go and the others stay."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ova.errors import BadInput
from ova.nn.heads import LastLayer

PER_CLASS = ("weight", "bias")  # parameters that have a row for each class; all others are shared


def of_classes(head: LastLayer) -> tuple[str, ...]:
    """The parameters with a row for each class; an error if a class is in more than its rows.

    >>> from ova.nn.heads import Rare
    >>> of_classes(Rare(4, 3))
    ('weight', 'bias')
    """
    wide = [name for name, p in head.named_parameters() if p.dim()]
    if not wide or any(name not in PER_CLASS for name in wide):
        raise BadInput(
            f"the last layer {type(head).__name__} has no row of its own for each class, so none can "
            "be put beside the others; train with another formulation, such as ova-ball or ova"
        )
    return tuple(wide)


@torch.no_grad()
def with_rows(head: LastLayer, old: Sequence[int | None], f: Tensor, y: Tensor) -> LastLayer:
    """A head of the same kind whose row k is the row old[k] as it is, or for None a first value of its own.

    Rows that are new start where a head would start that meets the embeddings f of the classes y;
    centres start at the means of their classes. What the classes share stays as it is.
    """
    names = of_classes(head)
    found = type(head)(head.in_features, len(old)).to(f.device)
    found.start(f, y)
    own = found.state_dict()
    shared = {n: t for n, t in head.state_dict().items() if n not in names}
    found.load_state_dict({**own, **shared})
    new = [k for k, row in enumerate(old) if row is None]
    weight = getattr(found, "weight", None)
    if isinstance(weight, Tensor) and found.centres is weight:
        e = found.embed(f)
        for k in new:
            weight[k] = e[y == k].mean(0)
    kept = [k for k, row in enumerate(old) if row is not None]
    came_from = [row for row in old if row is not None]
    for name in names:
        getattr(found, name)[kept] = getattr(head, name)[came_from].to(f.device)
    return found.train(head.training)
