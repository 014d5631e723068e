"""Columns of probabilities that are named after classes: proba_cat, proba_dog; or cat, dog."""

import re
from collections.abc import Sequence

from ova.errors import BadInput
from ova.predictions.formats.wanted import Wanted

PREFIXED = re.compile(
    r"(?P<prefix>p|probs?|proba|probability|probabilities|score)[_ .:](?P<of>.+)", re.I
)
LOGITS = re.compile(r"(?P<prefix>z|logits?)[_ .:](?P<of>.+)", re.I)


def prefixed(names: Sequence[str], pattern: re.Pattern[str] = PREFIXED) -> list[str]:
    """The columns with one prefix and a class behind it; none if there is a single one.

    >>> prefixed(["id", "proba_cat", "proba_dog", "truth"])
    ['proba_cat', 'proba_dog']
    """
    found: dict[str, list[str]] = {}
    for name in names:
        if m := pattern.fullmatch(name):
            found.setdefault(m["prefix"].lower(), []).append(name)
    several = [columns for columns in found.values() if len(columns) > 1]
    if len(several) > 1:
        first, second = several[0][0], several[1][0]
        raise BadInput(
            f"{first!r} and {second!r} both look like probabilities; say --columns probs=..."
        )
    return several[0] if several else []


def of_classes(columns: Sequence[str]) -> list[str]:
    """The classes that columns are of: their names, without a prefix that all of them have.

    >>> of_classes(["proba_cat", "proba_dog"]), of_classes(["cat", "dog"])
    (['cat', 'dog'], ['cat', 'dog'])
    """
    for pattern in (PREFIXED, LOGITS):
        found = [pattern.fullmatch(name) for name in columns]
        if len({m["prefix"].lower() for m in found if m}) == 1 and all(found):
            return [m["of"] for m in found if m]
    return list(columns)


def rest(names: Sequence[str], taken: Sequence[str], wanted: Wanted) -> list[str]:
    """All columns that nothing else is known of, where labels and sums can show that they are no classes.

    In files of none of the classes there are no labels, and one-vs-all rows have no sum: a column
    of anything else would pass for a class there.
    """
    left = [name for name in names if name.strip() and name not in taken]
    return left if len(left) > 1 and wanted.targets and wanted.normalised else []
