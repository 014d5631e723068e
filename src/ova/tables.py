"""Choice by name from a plain dict, with an answer that helps when the name is wrong."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

from ova.errors import BadInput

T = TypeVar("T")


def pick(table: Mapping[str, T], name: str, kind: str) -> T:
    """The entry called `name`; an unknown name says what is near and what there is.

    >>> pick({"softmax": 1, "ova": 2}, "ova", "formulation")
    2
    >>> pick({"softmax": 1, "ova": 2}, "sofmax", "formulation")
    Traceback (most recent call last):
    ...
    ova.errors.BadInput: no formulation called 'sofmax'; did you mean 'softmax'? There is: softmax, ova
    """
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    raise BadInput(f"no {kind} called {name!r}{hint} There is: {', '.join(table)}")
