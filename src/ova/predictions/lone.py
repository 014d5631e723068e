"""One column of probabilities for two classes: which class it is of is asked for, never guessed."""

from collections.abc import Mapping

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, whole
from ova.predictions.labelled import Chunk, Said, is_words

INT = np.dtype(np.int32)
TRUTH: Mapping[str, int] = {"true": 1, "false": 0}  # labels that are no numbers in all files


def of_two(chunk: Chunk, how: Said, first: int, codes: dict[str, int]) -> Chunk:
    """The chunk with the probabilities of both classes, the other one's first.

    `codes` are the labels that were met before, the class that was said as 1, and grow.

    >>> from ova.predictions.foreign import Reading
    >>> how = Reading(columns={"positive": ("yes",)})
    >>> chunk = {"probs": np.array([0.75, 0.5]), "target": np.array(["yes", "no"], object)}
    >>> found = of_two(chunk, how, 0, {})
    >>> found["probs"].tolist(), found["target"].tolist()
    ([[0.25, 0.75], [0.5, 0.5]], [1, 0])
    """
    positive = next(iter(how.columns.get("positive", ())), None)
    if "probs" not in chunk or chunk["probs"].ndim != 1:
        if positive is None:
            return chunk
        raise BadInput(
            f"--columns positive={positive} is of a lone column of probabilities, and there is none"
        )
    if positive is None or "classes" in chunk:
        raise BadInput(
            "one column of probabilities could be of either class: say whose it is by the label of "
            "that class, --columns positive=1 or --columns positive=yes"
        )
    if not how.normalised:
        raise BadInput(
            "one column of probabilities is for two classes that sum to one, not one-vs-all"
        )
    p = np.asarray(chunk["probs"], np.float64)
    both = {"probs": np.stack([1 - p, p], axis=1)}
    if "target" in chunk:
        both["target"] = numbered(chunk["target"], positive, first, codes)
    # What was predicted by a threshold of one's own need not be the likelier class.
    return {name: column for name, column in chunk.items() if name != "prediction"} | both


def numbered(target: Array, positive: str, first: int, codes: dict[str, int]) -> Array:
    """1 where a label is that of the class that was said, 0 where it is the only other one."""
    labels = names(target, first) if is_words(target) else whole(target, "target", INT, first)
    wanted = positive if is_words(target) else number(positive)
    codes.setdefault(str(wanted), 1)
    for each in np.unique(labels).tolist():
        codes.setdefault(str(each), 0)
        if len(codes) > 2:
            row, before = first + int(np.argmax(labels == each)), [*codes][1]
            raise BadInput(
                f"row {row}: target is {str(each)!r}, but there is {before!r} besides {str(wanted)!r} "
                "already; one column of probabilities is enough for two classes alone"
            )
    return np.asarray(labels == wanted, np.int32)


def names(target: Array, first: int) -> Array:
    """Labels that are words, none of them missing."""
    missing = np.array([label is None for label in target.tolist()])
    if missing.any():
        raise BadInput(f"row {first + int(np.argmax(missing))}: target is missing")
    return target.astype(str)


def number(positive: str) -> int:
    """The class that was said, where labels are numbers."""
    try:
        return TRUTH[positive.lower()] if positive.lower() in TRUTH else int(positive)
    except ValueError:
        raise BadInput(
            f"--columns positive={positive}: the labels are numbers; name one of them, as in positive=1"
        ) from None
