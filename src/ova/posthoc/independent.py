"""Rows that are not independent count as one: copies of an input, several photos of one thing.

A binomial test takes every row for a draw of its own. Ten copies of an input are one draw, so a
promise and a calibration rest on one row of each group.
"""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ova.errors import BadInput

Rows = NDArray[np.int64]
Groups = Iterable[Hashable] | NDArray[Any]


def numbered(groups: Groups) -> Rows:
    """The group of each row as a number 0, 1, ... in the order in which they first come.

    >>> numbered(["b", "a", "b"])
    array([0, 1, 0])
    """
    names = groups.tolist() if isinstance(groups, np.ndarray) else groups
    numbers: dict[Hashable, int] = {}
    try:
        found = [numbers.setdefault(name, len(numbers)) for name in names]
    except TypeError:
        raise BadInput("there must be one group per row, a number or a text") from None
    lacking = next((k for name, k in numbers.items() if name is None or name != name), None)  # noqa: PLR0124  NaN
    if lacking is not None:
        row = found.index(lacking)
        raise BadInput(f"row {row} has no group; a row that stands alone is a group of its own")
    return np.array(found, np.int64)


def one_of_each(groups: Groups, seed: int = 0) -> Rows:
    """One row of every group, in the order of the rows; each row of a group has the same chance.

    The lot looks at nothing but the groups, so independent groups give independent rows, whatever
    the labels of their members. The first row would do only where the order of rows means nothing.

    >>> one_of_each(["a", "b", "a", "c"]).tolist()
    [1, 2, 3]
    """
    of = numbered(groups)
    rows = np.random.default_rng(seed).permutation(len(of))
    _, first = np.unique(of[rows], return_index=True)
    return np.sort(rows[first])
