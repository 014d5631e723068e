"""Which columns of somebody's file are targets, probabilities, confidences, by their usual names."""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions
from ova.predictions.formats.named import LOGITS, of_classes, prefixed, rest
from ova.predictions.formats.wanted import Wanted, found_in
from ova.predictions.parquet import to_matrix

Chunk = dict[str, Array]  # by our names: probs or confidence and prediction, target, id
Chunks = Callable[[Path, Wanted], Iterator[Chunk | Predictions]]
# Our name -> the file's column, or K columns; `classes` are the names of these.
Places = Mapping[str, str | list[str]]

NAMES = {
    "target": ("target", "targets", "label", "labels", "y", "y_true"),
    "prediction": ("prediction", "predictions", "predicted", "y_pred"),
    "confidence": ("confidence", "confidences", "max_p"),
    "probs": ("probs", "probabilities", "proba", "probability", "p"),
    "id": ("id", "ids"),
}
NAMED = ("target", "prediction")  # these may be words, the names of classes
MATRICES = ("probs", "logits")
LONE = ("y_prob", "y_proba", "y_score")  # of one of two classes; which, the user says
SCORED = re.compile(r"(?:z|logits?)[_ ]?(\d{1,9})", re.ASCII)
NUMBERED = re.compile(r"(?:p|probs?|proba|probability|class)?[_ ]?(\d{1,9})", re.ASCII)
MOST = 1 << 16  # columns of a table; each costs kilobytes, however few its rows are
NEEDED = (
    "expected `target` with either probabilities (a matrix `probs`, or columns p_0, p_1, ...) "
    "or `confidence` and `prediction`"
)


def places_of(names: list[str], wanted: Wanted) -> dict[str, str | list[str]]:
    """Where a file has what we call target, prediction, confidence, probs and id.

    What the user says comes first, then usual names, then columns that are named after classes.
    """
    if len(names) > MOST:
        raise BadInput(
            f"{len(names)} columns are more than {MOST}; for so many classes save a matrix `probs`, "
            "in .npz or as lists in Parquet"
        )
    places = found_in(names, wanted)
    said = {*used(places)}
    lower: dict[str, list[str]] = {}
    for name in names:
        if name not in said:
            lower.setdefault(name.lower(), []).append(name)
    for ours, known in NAMES.items():
        theirs = next((lower[name] for name in known if name in lower), None)
        skipped = ours in places or (ours == "target" and not wanted.targets)
        if theirs and not skipped and not (ours == "probs" and _matrix(places)):
            places[ours] = _only(theirs)
    left = [name for name in names if name not in said]
    if wanted.logits and "probs" not in wanted.columns:
        places.pop("probs", None)
        places |= _logits(left, lower, places)
    elif not (said and _matrix(places)):
        places |= _probabilities(left, lower, places, wanted)
    matrix = _matrix(places)
    if matrix:  # they say it themselves
        places.pop("confidence", None)
        if isinstance(places[matrix], str) or "classes" not in places:
            places.pop("prediction", None)
    if "classes" in wanted.columns:
        places["classes"] = list(wanted.columns["classes"])
    elif said and matrix and isinstance(places[matrix], list):
        places["classes"] = of_classes(list(places[matrix]))
    if told := guessed(places, said):
        wanted.tell(told)
    return places


def _matrix(places: Places) -> str:
    """Whether there are probabilities or logits."""
    return next((name for name in MATRICES if name in places), "")


def _logits(left: list[str], lower: Mapping[str, list[str]], places: Places) -> Places:
    """The columns of logits, which the user said how to read."""
    if "logits" in places:
        return {}
    alone = next((lower[name] for name in ("logits", "logit") if name in lower), None)
    if alone:
        return {"logits": _only(alone)}
    if numbered := _numbered(left, SCORED):
        return {"logits": numbered}
    if named := prefixed(left, LOGITS):
        return {"logits": named, "classes": of_classes(named)}
    have = ", ".join(left[:9]) or "nothing"
    raise BadInput(f"--logits, but there are none; found {have}; --columns logits=... names them")


def _probabilities(
    left: list[str], lower: Mapping[str, list[str]], places: Places, wanted: Wanted
) -> Places:
    """The columns of probabilities: a matrix, numbered, or named after classes."""
    numbered = _numbered(left)
    if numbered and "probs" in places:
        raise BadInput(f"{places['probs']!r} and {numbered[0]!r} both say probabilities; keep one")
    if numbered:
        return {"probs": numbered}
    if "probs" in places or {"confidence", "prediction"} <= places.keys():
        return {}
    named = prefixed(left)
    if not named and (alone := next((lower[name] for name in LONE if name in lower), None)):
        return {"probs": _only(alone)}
    if not named and not any("logit" in name for name in lower) and "target" in places:
        known = [name for names in NAMES.values() for name in names]
        named = rest(left, [n for n in left if n.lower() in known], wanted)
    if not named:
        raise BadInput(_missing(lower))
    return {"probs": named, "classes": of_classes(named)}


def guessed(places: Places, said: Collection[str] = ()) -> str:
    """What was taken for what, where the file has other names than ours; empty where it has ours.

    >>> guessed({"target": "y_true", "probs": ["proba_cat", "proba_dog"], "classes": ["cat", "dog"]})
    "target is 'y_true', probs are 'proba_cat', 'proba_dog' (2 classes)"
    """
    told = []
    for ours, theirs in places.items():
        if isinstance(theirs, str) and theirs != ours and theirs not in said:
            told.append(f"{ours} is {theirs!r}")
        named = ours in MATRICES and isinstance(theirs, list) and not {*theirs} <= {*said}
        if named and ("classes" in places or theirs[0] != "p_0"):
            few = ", ".join(map(repr, theirs[:3])) + (", ..." if len(theirs) > 3 else "")
            told.append(f"{ours} are {few} ({len(theirs)} classes)")
    return ", ".join(told)


def _only(alike: list[str]) -> str:
    """The one column of a name; of two, nobody knows which is meant."""
    if len(set(alike)) > 1:
        raise BadInput(f"{alike[0]!r} and {alike[1]!r} differ only in case; keep one of them")
    if len(alike) > 1:
        raise BadInput(f"two columns are called {alike[0]!r}; keep one of them")
    return alike[0]


def _numbered(names: list[str], pattern: re.Pattern[str] = NUMBERED) -> list[str]:
    """The columns of classes 0..K-1, each there once."""
    found: dict[int, str] = {}
    for name in names:
        if m := pattern.fullmatch(name.lower()):
            k = int(m[1])
            if k in found:
                raise BadInput(
                    f"{found[k]!r} and {name!r} both are the probability of class {k}; keep one"
                )
            found[k] = name
    if sorted(found) != list(range(len(found))):
        raise BadInput(
            f"the columns of probabilities must be numbered 0..K-1, not {sorted(found)[:9]}"
        )
    return [found[k] for k in range(len(found))]


def _missing(lower: Iterable[str]) -> str:
    found = f"found {', '.join(list(lower)[:9]) or 'nothing'}; {NEEDED}"
    if any("logit" in name for name in lower):
        return (
            "logits are not probabilities: say --logits softmax, or --logits sigmoid for one answer "
            f"per class, or apply it first; {found}"
        )
    return f"{found}; --columns says which columns these are"


def used(places: Places) -> list[str]:
    """The columns of the file that are read."""
    columns = (theirs for ours, theirs in places.items() if ours != "classes")
    return [n for v in columns for n in ([v] if isinstance(v, str) else v)]


def chunk_of(places: Places, columns: Chunk) -> Chunk:
    """The columns under our names, all of one length."""
    chunk: Chunk = {}
    for ours, theirs in places.items():
        if isinstance(theirs, str):
            chunk[ours] = columns[theirs]
        elif ours != "classes":
            chunk[ours] = np.stack([columns[name] for name in theirs], axis=1)
    lengths = {len(column) for column in chunk.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name} {len(column)}" for name, column in chunk.items())
        raise BadInput(f"columns of different lengths: {sizes}")
    return chunk | ({"classes": np.array(places["classes"])} if "classes" in places else {})


def columns_of(batch: Any, places: Places) -> Chunk:
    """The columns of an Arrow batch as arrays."""
    words = {places.get(ours) for ours in ("id", *NAMED)}
    return {n: _numpy(batch.column(n), n, n in words) for n in batch.schema.names}


def _numpy(column: Any, name: str, words: bool) -> Array:
    """A column of numbers, or of lists of one length, as an array; a missing number is NaN."""
    if isinstance(column, pa.ChunkedArray):  # a column of a table
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        sizes = (
            np.asarray(column.value_lengths()) if not pa.types.is_fixed_size_list(kind) else None
        )
        if sizes is not None and len(sizes) and not (sizes == sizes[0]).all():
            row = int(np.argmax(sizes != sizes[0]))
            raise BadInput(f"row {row} of a chunk: {name} has {sizes[row]} numbers, not {sizes[0]}")
        if column.null_count:
            raise BadInput(f"{name} has {column.null_count} missing rows")
        return to_matrix(column, None)
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        if not words:
            raise BadInput(f"{name} must be numbers, not {kind}")
        column = column.cast(pa.string())
    return np.asarray(column.to_numpy(zero_copy_only=False))
