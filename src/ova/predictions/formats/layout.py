"""Which columns of somebody's file are targets, probabilities, confidences, by their usual names."""

import re
from collections.abc import Callable, Iterator, Mapping
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
NUMBERED = re.compile(r"(?:p|probs?|proba|probability|class)?[_ ]?(\d+)")
NEEDED = (
    "expected `target` with either probabilities (a matrix `probs`, or columns p_0, p_1, ...) "
    "or `confidence` and `prediction`"
)


def places_of(names: list[str], targets: bool) -> dict[str, str | list[str]]:
    """Where a file has what we call target, prediction, confidence, probs and id."""
    lower = {name.lower(): name for name in names}
    places: dict[str, str | list[str]] = {
        ours: next(lower[theirs] for theirs in known if theirs in lower)
        for ours, known in NAMES.items()
        if any(theirs in lower for theirs in known) and (targets or ours != "target")
    }
    numbered = {int(m[1]): n for n in names if (m := NUMBERED.fullmatch(n.lower()))}
    if numbered and "probs" not in places:
        if sorted(numbered) != list(range(len(numbered))):
            raise BadInput(
                f"the columns of probabilities must be numbered 0..K-1, not {sorted(numbered)[:9]}"
            )
        places["probs"] = [numbered[k] for k in range(len(numbered))]
    if "probs" not in places and not {"confidence", "prediction"} <= places.keys():
        raise BadInput(_missing(lower))
    if "probs" in places:  # they say it themselves
        places = {k: v for k, v in places.items() if k not in ("confidence", "prediction")}
    return places


def _missing(lower: Mapping[str, str]) -> str:
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
        if ours == "id" and columns[str(theirs)].dtype.kind not in "iu":
            continue  # names of files and the like: the row numbers serve
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
    if not is_id and not (
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    ):
        raise BadInput(f"{name} must be numbers, not {kind}")
    return np.asarray(column.to_numpy(zero_copy_only=False))
