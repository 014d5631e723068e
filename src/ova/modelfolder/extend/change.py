"""Which classes a model has afterwards, and where the rows of the earlier ones belong then."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ova.errors import BadInput, pick
from ova.predictions import NONE, NONE_LABEL


@dataclass(frozen=True)
class Change:
    """The classes from before and after."""

    before: tuple[str, ...]
    after: tuple[str, ...]
    removed: tuple[str, ...] = ()
    merged: tuple[tuple[tuple[str, ...], str], ...] = ()  # (A, B), C

    @property
    def old(self) -> list[int | None]:
        """For each class of after its row of before; None for one that needs a new row."""
        place = {name: k for k, name in enumerate(self.before)}
        fresh = {into for _, into in self.merged}
        return [None if name in fresh else place.get(name) for name in self.after]

    @property
    def new(self) -> tuple[int, ...]:
        """The classes of after that need a new row."""
        return tuple(k for k, row in enumerate(self.old) if row is None)

    def target(self, y: Tensor) -> Tensor:
        """The class of rows afterwards; those of a class that was removed belong to none."""
        becomes = {name: name for name in self.before}
        becomes |= {name: into for names, into in self.merged for name in names}
        number = {name: k for k, name in enumerate(self.after)}
        table = [number.get(becomes[name], NONE) for name in self.before]
        return torch.tensor([*table, NONE])[y]


def change(
    before: Sequence[str], new: Sequence[str], remove: Sequence[str], merge: Sequence[str]
) -> Change:
    """What is asked for, checked against the classes that there are.

    Classes that stay keep their order; the others come after them by name.

    >>> change(("a", "b", "c", "d"), ["e"], ["d"], ["a,b=f"]).after
    ('c', 'e', 'f')
    """
    classes = dict.fromkeys(before)
    merged = tuple(parts(each, before) for each in merge)
    gone = [name for names, _ in merged for name in names]
    for name in remove:
        pick(classes, name, "class")
    twice = [name for k, name in enumerate([*gone, *remove]) if name in [*gone, *remove][:k]]
    if twice:
        raise BadInput(f"{twice[0]!r} is named twice in what to merge and to remove")
    into = [name for _, name in merged]
    for name in into:
        if into.count(name) > 1 or name in remove or (name in gone and name not in own(merged)):
            raise BadInput(f"--merge makes {name!r}, which another part removes, merges or makes")
    stays = [n for n in before if n not in {*gone, *remove, *into}]
    after = (*stays, *sorted({*new, *into}))
    if len(after) < 2:
        raise BadInput(f"a model needs two classes, {len(after)} would be left; remove fewer")
    if NONE_LABEL in after:
        raise BadInput(
            f"a class cannot be called {NONE_LABEL!r}, which is what a refusal is called"
        )
    return Change(tuple(before), after, tuple(remove), merged)


def own(merged: Sequence[tuple[tuple[str, ...], str]]) -> set[str]:
    """The classes that others are put into, and that are among those themselves."""
    return {into for names, into in merged if into in names}


def parts(said: str, before: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """The classes to merge, and what they become: "A,B=C"; C may be a class that there is."""
    names, mark, into = said.partition("=")
    found = tuple(name.strip() for name in names.split(",") if name.strip())
    if not mark or not into.strip() or not found:
        raise BadInput(f"--merge {said!r} does not say what becomes what; say A,B=C")
    for name in found:
        pick(dict.fromkeys(before), name, "class")
    if into.strip() in before and into.strip() not in found:
        found = (*found, into.strip())
    if len(found) < 2 and into.strip() == found[0]:
        raise BadInput(f"--merge {said!r} changes nothing")
    return found, into.strip()
