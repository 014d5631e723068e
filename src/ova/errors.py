"""The error that is the user's to mend, and choice by name, whose error says what there is."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TypeVar

T = TypeVar("T")


class BadInput(ValueError):
    """Input that cannot be used. The message says what was wrong and what would have worked.

    The command line prints it and exits with 2.
    """


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
