"""What is to be read of a file: targets or none, and what the user said of its columns."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from ova.errors import BadInput

# What can be said of columns; `classes` are the names of the classes in the order of the probabilities,
# `positive` is the one that a lone column of them is of.
SAID = ("target", "prediction", "confidence", "probs", "logits", "id", "classes", "positive")
LABELS = ("classes", "positive")  # these name no columns
SEVERAL = ("probs", "logits", "classes")
LINKS = ("softmax", "sigmoid")


def silent(_: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Wanted:
    """What a file is read for, and what is known of it."""

    targets: bool = True
    normalised: bool = True  # rows sum to one, which shows columns that were taken wrongly
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # our name -> theirs
    logits: str = (
        ""  # what makes probabilities of logits, softmax or sigmoid; they are refused without
    )
    tell: Callable[[str], None] = silent  # hears what was guessed


def told(given: Sequence[str], known: Sequence[str] = SAID) -> dict[str, tuple[str, ...]]:
    """What `--columns` says of the names that the command knows.

    >>> told(["target=truth", "probs=cat,dog"])
    {'target': ('truth',), 'probs': ('cat', 'dog')}
    """
    found: dict[str, tuple[str, ...]] = {}
    for each in given:
        ours, sign, theirs = each.partition("=")
        names = tuple(name.strip() for name in theirs.split(",") if name.strip())
        if ours not in known or not sign or not names:
            raise BadInput(
                f"--columns {each!r}: wanted NAME=COLUMN, where NAME is one of {', '.join(known)}"
            )
        if ours in found:
            raise BadInput(
                f"--columns says {ours} twice; name all its columns at once, with commas"
            )
        if len(names) > 1 and ours not in SEVERAL:
            what = "class" if ours == "positive" else "column"
            raise BadInput(f"--columns {each!r}: {ours} is one {what}")
        found[ours] = names
    if "probs" in found and "logits" in found:
        raise BadInput("--columns says probs and logits; say one of them")
    return found


def found_in(names: Sequence[str], wanted: Wanted) -> dict[str, str | list[str]]:
    """The columns that the user named, as they are in the file; `*` stands for anything."""
    places: dict[str, str | list[str]] = {}
    for ours, theirs in wanted.columns.items():
        if ours in LABELS or (ours == "target" and not wanted.targets):
            continue
        columns = [name for one in theirs for name in matching(names, one, ours)]
        twice = next((name for name in columns if columns.count(name) > 1), None)
        if twice is not None:
            raise BadInput(f"--columns {ours}: {twice!r} is named twice")
        places[ours] = columns if len(columns) > 1 else columns[0]
    return places


def matching(names: Sequence[str], pattern: str, ours: str) -> list[str]:
    """The columns of a name or a pattern, in the order of the file."""
    if pattern in names:
        return [pattern]
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        have = ", ".join(map(repr, names[:9]))
        raise BadInput(f"there is no column {pattern!r} (--columns {ours}); the columns are {have}")
    return found
