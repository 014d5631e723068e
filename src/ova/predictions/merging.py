"""Merge predictions made in parts, by processes or chunks, into one set in the order of its ids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import COLUMNS, Predictions


def merge(parts: Sequence[Predictions], *, total: int | None = None) -> Predictions:
    """All rows of the parts in the order of their ids, as if one process had made them.

    An id that comes twice is an error. With `total`, the ids must be exactly 0..total-1, so that a
    lost example is found.

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 1], normalised=True)
    >>> merge([said.take([1]), said.take([0])], total=2).id
    array([0, 1])
    """
    if not parts:
        raise BadInput("there are no parts to merge")
    joined = _join(parts) if len(parts) > 1 else parts[0]
    merged = joined if (joined.id[1:] > joined.id[:-1]).all() else _ordered(joined)
    if total is not None:
        _check_complete(merged, total)
    return merged


def _ordered(joined: Predictions) -> Predictions:
    order = np.argsort(joined.id, kind="stable")
    ids = joined.id[order]
    again = ids[1:] == ids[:-1]
    if again.any():
        raise BadInput(f"id {ids[again.argmax()]} comes more than once in the parts")
    return joined.take(order)


def _join(parts: Sequence[Predictions]) -> Predictions:
    first = parts[0]
    columns: dict[str, Any] = {
        name: _column(name, [getattr(part, name) for part in parts]) for name in COLUMNS
    }
    scores = {
        name: _column(name, [part.scores.get(name) for part in parts])
        for name in {name: None for part in parts for name in part.scores}
    }
    for i, part in enumerate(parts):
        if (part.classes, part.normalised) != (first.classes, first.normalised):
            raise BadInput(
                f"part {i} has {part.classes} classes and normalised={part.normalised}, "
                f"part 0 has {first.classes} and {first.normalised}"
            )
    return replace(first, **columns, scores=scores)


def _column(name: str, values: Sequence[Any]) -> Any:
    absent = [v is None for v in values]
    if any(absent) and not all(absent):
        raise BadInput(f"part {absent.index(not absent[0])} differs in having {name}")
    return None if absent[0] else np.concatenate(values)


def _check_complete(merged: Predictions, total: int) -> None:
    if len(merged) == total and (total == 0 or (merged.id[0], merged.id[-1]) == (0, total - 1)):
        return  # sorted, distinct, and as many as there are places
    lost = np.setdiff1d(np.arange(total), merged.id)
    if len(lost):
        raise BadInput(f"{len(lost)} of {total} examples are lost, the first has id {lost[0]}")
    strange = merged.id[(merged.id < 0) | (merged.id >= total)]
    raise BadInput(f"id {strange[0]} lies outside 0..{total - 1}")
