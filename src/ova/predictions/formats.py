"""The files people have, as chunks of columns under our names: .parquet, .csv, .npz.

Nothing is unpickled, and a matrix is read by rows.
"""

import csv
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions

Chunk = dict[str, Array]  # by our names: probs or confidence and prediction, target, id
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
CELLS = 1 << 24  # of a matrix in memory at a time


def parquet_chunks(path: Path, targets: bool) -> Iterator[Chunk | Predictions]:
    """Chunks of a Parquet file, ours or anybody's."""
    from ova.predictions.parquet import ROWS, is_ours, open_parquet, read_chunks

    with open_parquet(path) as file:
        if is_ours(file):
            yield from read_chunks(path)
            return
        names = file.schema_arrow.names
        places = _places(names, targets)
        lists = "probs" in places and isinstance(places["probs"], str)
        width = 1000 if lists else len(names)  # of a list the width is not known before reading
        for batch in file.iter_batches(max(1, min(ROWS, CELLS // width)), columns=_used(places)):
            yield _chunk(places, _columns(batch, places))


def csv_chunks(path: Path, targets: bool) -> Iterator[Chunk | Predictions]:
    """Chunks of a CSV file with a header."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        names = [name.strip() for name in next(csv.reader(file), [])]
    places = _places(names, targets)
    used = _used(places)
    floats = {name: pa.float64() for name in used if name != places.get("id")}
    options = arrow.ConvertOptions(column_types=floats, include_columns=used)
    read = arrow.ReadOptions(block_size=1 << 24, column_names=names, skip_rows=1)
    try:
        with arrow.open_csv(path, read_options=read, convert_options=options) as reader:
            for batch in reader:
                yield _chunk(places, _columns(batch, places))
    except pa.ArrowInvalid as error:
        raise BadInput(f"not a CSV file of numbers: {error}") from None


def npz_chunks(path: Path, targets: bool) -> Iterator[Chunk | Predictions]:
    """Chunks of an .npz file; the matrix is read by rows, nothing in it is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()]
            places = _places(names, targets)
            columns = {n: _array(archive, n) for n in _used(places) if n != places.get("probs")}
            if isinstance(places.get("probs"), str):
                yield from _npz_rows(archive, places, columns)
            else:
                yield _chunk(places, columns)
    except (zipfile.BadZipFile, EOFError) as error:
        raise BadInput(f"not an .npz file: {error}") from None


def _npz_rows(archive: zipfile.ZipFile, places: Places, columns: Chunk) -> Iterator[Chunk]:
    matrix = str(places["probs"])
    with archive.open(f"{matrix}.npy") as file:
        shape, fortran, _ = _header(file, matrix)
    if len(shape) != 2:
        raise BadInput(f"{matrix} must be a matrix of N rows and K classes, not of shape {shape}")
    for name, column in columns.items():
        if column.shape != shape[:1]:
            raise BadInput(f"{name} has shape {column.shape}, but {matrix} has {shape[0]} rows")
    rows = max(1, CELLS // max(1, shape[1]))
    blocks = _blocks(archive, matrix, rows) if not fortran else iter([_array(archive, matrix)])
    first = 0
    for block in blocks:
        block_rows = slice(first, first + len(block))
        first += len(block)
        chunk = _chunk({k: v for k, v in places.items() if k != "probs"}, columns)
        yield {name: column[block_rows] for name, column in chunk.items()} | {"probs": block}


def _header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    form = np.lib.format
    try:
        version = form.read_magic(file)
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except ValueError as error:
        raise BadInput(f"{name} is not an array: {error}") from None
    if dtype.hasobject:
        raise BadInput(f"{name} holds Python objects, which are not read; save plain numbers")
    return shape, fortran, dtype


def _blocks(archive: zipfile.ZipFile, name: str, rows: int) -> Iterator[Array]:
    with archive.open(f"{name}.npy") as file:
        shape, _, dtype = _header(file, name)
        size = shape[1] * dtype.itemsize
        for start in range(0, shape[0], rows):
            count = min(rows, shape[0] - start)
            data = file.read(count * size)
            if len(data) < count * size:
                raise BadInput(f"{name} ends before its {shape[0]} rows")
            yield np.frombuffer(data, dtype).reshape(count, shape[1])


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with archive.open(f"{name}.npy") as file:
        try:
            return np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        except ValueError as error:
            raise BadInput(f"{name} is not an array of numbers: {error}") from None


def _places(names: list[str], targets: bool) -> dict[str, str | list[str]]:
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


def _used(places: Places) -> list[str]:
    return [n for v in places.values() for n in ([v] if isinstance(v, str) else v)]


def _chunk(places: Places, columns: Chunk) -> Chunk:
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


def _columns(batch: Any, places: Places) -> Chunk:
    return {n: _numpy(batch.column(n), n, n == places.get("id")) for n in batch.schema.names}


def _numpy(column: Any, name: str, is_id: bool) -> Array:
    """A column of numbers, or of lists of one length, as an array; a missing number is NaN."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        from ova.predictions.parquet import to_matrix

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


# suffix -> chunks of (path, whether targets are read)
FORMATS: dict[str, Callable[[Path, bool], Iterator[Chunk | Predictions]]] = {
    ".parquet": parquet_chunks,
    ".csv": csv_chunks,
    ".npz": npz_chunks,
}
