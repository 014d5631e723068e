"""Labels that are the names of classes, as the numbers of these; what could be meant otherwise is asked for."""

from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions

Chunk = dict[str, Array]
FEW = 5


class Said(Protocol):
    """What is known of the columns beforehand."""

    @property
    def columns(self) -> Any: ...
    @property
    def normalised(self) -> bool: ...


def by_number(chunk: Chunk, how: Said, first: int, codes: dict[str, int]) -> Chunk:
    """The chunk with numbers in the place of names; `codes` are those given before, and grow.

    Which class a column of probabilities is of must be known: by the names of the columns, or because
    the user said it. Confidences are of no class, so names are numbered as they come.
    """
    matrix = "probs" in chunk or "logits" in chunk
    if matrix and "classes" in chunk:
        width = (chunk["probs"] if "probs" in chunk else chunk["logits"]).shape[1]
        classes = chunk["classes"].tolist()
        if len(classes) != width or len({*classes}) != width:
            raise BadInput(
                f"{len({*classes})} classes are named, but there are {width} columns of them"
            )
        codes = {name: k for k, name in enumerate(classes)}
    found = dict(chunk)
    for name in ("target", "prediction"):
        if name in chunk and is_words(chunk[name]):
            words = pa.array(chunk[name], pa.string())
            if not matrix:
                for word in words.unique().drop_null().to_pylist():
                    codes.setdefault(word, len(codes))
            elif not codes:
                few = ", ".join(map(repr, words.unique().to_pylist()[:FEW]))
                raise BadInput(
                    f"{name} has names ({few}), but the columns of probabilities are numbered; "
                    "say in which order they are: --columns classes=cat,dog,..."
                )
            found[name] = numbers(words, codes, name, first)
        elif name in chunk and matrix and "classes" in chunk and not asked(how):
            few = ", ".join(chunk["classes"].tolist()[:FEW])
            raise BadInput(
                f"{name} has numbers, but the columns are of {few}; which is 0? Say it by their order: "
                "--columns probs=COLUMN,COLUMN,..."
            )
    return found


def asked(how: Said) -> bool:
    """Whether the user said in which order the classes are."""
    return any(name in how.columns for name in ("probs", "logits", "classes"))


def is_words(column: Array) -> bool:
    """Whether a column has names; numbers, and those in CSV without any, have none."""
    return column.dtype.kind in "OU"


def numbers(words: Any, codes: dict[str, int], name: str, first: int) -> Array:
    """The numbers of names; one that there is no class for is named with its row."""
    found = pc.index_in(words, value_set=pa.array(list(codes), pa.string()))
    if not found.null_count:
        return np.asarray(found, np.int32)
    row = int(np.argmax(np.asarray(found.is_null())))
    word = words[row].as_py()
    what = f"is {word!r}" if word else "is missing"
    few = ", ".join(list(codes)[:FEW]) + (", ..." if len(codes) > FEW else "")
    raise BadInput(
        f"row {first + row}: {name} {what}, but the classes are {few}; --columns says which columns are "
        "probabilities, and rows of none of the classes are for a file of their own (--ood)"
    )


def check_said(p: Predictions, said: Array, classes: Array, first: int) -> None:
    """Refuse columns whose largest is not what the file itself says that was predicted."""
    differ = np.flatnonzero(np.asarray(said) != np.asarray(p.prediction))
    if len(differ) and p.probs is not None:
        tied = p.probs[differ, np.asarray(said)[differ].astype(int)] == p.probs[differ].max(1)
        differ = differ[~tied]
    if len(differ):
        row = int(differ[0])
        name, largest = classes[int(said[row])], classes[int(p.prediction[row])]
        raise BadInput(
            f"row {first + row}: it predicts {name}, but the largest probability is that of {largest}; "
            "--columns probs=... says which columns are probabilities"
        )
