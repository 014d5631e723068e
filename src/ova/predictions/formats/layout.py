"""Which columns of somebody's file are targets, probabilities, confidences, by their usual names."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions
from ova.predictions.parquet import to_matrix

Chunk = dict[str, Array]  # by our names: probs or confidence and prediction, target, id
# of (file, whether targets are read)
Chunks = Callable[[Path, bool], Iterator[Chunk | Predictions]]
Places = Mapping[str, str | list[str]]  # our name -> the file's column, or K columns

NAMES = {
    "target": ("target", "targets", "label", "labels", "y", "y_true"),
    "prediction": ("prediction", "predictions", "predicted", "y_pred"),
    "confidence": ("confidence", "confidences", "max_p"),
    "probs": ("probs", "probabilities", "proba", "probability", "p"),
    "id": ("id", "ids"),
}
NUMBERED = re.compile(r"(?:p|probs?|proba|probability|class)?[_ ]?(\d{1,9})", re.ASCII)
MOST = 1 << 16  # columns of a table; each costs kilobytes, however few its rows are
NEEDED = (
    "expected `target` with either probabilities (a matrix `probs`, or columns p_0, p_1, ...) "
    "or `confidence` and `prediction`"
)


def places_of(names: list[str], targets: bool) -> dict[str, str | list[str]]:
    """Where a file has what we call target, prediction, confidence, probs and id."""
    if len(names) > MOST:
        raise BadInput(
            f"{len(names)} columns are more than {MOST}; for so many classes save a matrix `probs`, "
            "in .npz or as lists in Parquet"
        )
    lower: dict[str, list[str]] = {}
    for name in names:
        lower.setdefault(name.lower(), []).append(name)
    places: dict[str, str | list[str]] = {
        ours: _only(next(lower[theirs] for theirs in known if theirs in lower))
        for ours, known in NAMES.items()
        if any(theirs in lower for theirs in known) and (targets or ours != "target")
    }
    numbered = _numbered(names)
    if numbered and "probs" in places:
        raise BadInput(f"{places['probs']!r} and {numbered[0]!r} both say probabilities; keep one")
    if numbered:
        places["probs"] = numbered
    if "probs" not in places and not {"confidence", "prediction"} <= places.keys():
        raise BadInput(_missing(lower))
    if "probs" in places:  # they say it themselves
        places = {k: v for k, v in places.items() if k not in ("confidence", "prediction")}
    return places


def _only(alike: list[str]) -> str:
    """The one column of a name; of two, nobody knows which is meant."""
    if len(set(alike)) > 1:
        raise BadInput(f"{alike[0]!r} and {alike[1]!r} differ only in case; keep one of them")
    if len(alike) > 1:
        raise BadInput(f"two columns are called {alike[0]!r}; keep one of them")
    return alike[0]


def _numbered(names: list[str]) -> list[str]:
    """The columns of classes 0..K-1, each there once."""
    found: dict[int, str] = {}
    for name in names:
        if m := NUMBERED.fullmatch(name.lower()):
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
            f"logits are not probabilities: apply softmax, or a sigmoid per class, first; {found}"
        )
    return found


def used(places: Places) -> list[str]:
    """The columns of the file that are read."""
    return [n for v in places.values() for n in ([v] if isinstance(v, str) else v)]


def chunk_of(places: Places, columns: Chunk) -> Chunk:
    """The columns under our names, all of one length."""
    chunk: Chunk = {}
    for ours, theirs in places.items():
        if isinstance(theirs, str):
            chunk[ours] = columns[theirs]
        else:
            chunk[ours] = np.stack([columns[name] for name in theirs], axis=1)
    lengths = {len(column) for column in chunk.values()}
    if len(lengths) > 1:
        sizes = ", ".join(f"{name} {len(column)}" for name, column in chunk.items())
        raise BadInput(f"columns of different lengths: {sizes}")
    return chunk


def columns_of(batch: Any, places: Places) -> Chunk:
    """The columns of an Arrow batch as arrays."""
    return {n: _numpy(batch.column(n), n, n == places.get("id")) for n in batch.schema.names}


def _numpy(column: Any, name: str, is_id: bool) -> Array:
    """A column of numbers, or of lists of one length, as an array; a missing number is NaN."""
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
        if not is_id:
            raise BadInput(f"{name} must be numbers, not {kind}")
        column = column.cast(pa.string())
    return np.asarray(column.to_numpy(zero_copy_only=False))
