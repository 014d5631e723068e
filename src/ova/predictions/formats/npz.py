"""Predictions in NumPy's .npz: the matrix is read by rows, and nothing is unpickled."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions
from ova.predictions.formats.layout import Chunk, Places, chunk_of, places_of, used
from ova.predictions.parquet import rows_at_once


def chunks(path: Path, targets: bool) -> Iterator[Chunk | Predictions]:
    """Chunks of an .npz file; the matrix is read by rows, nothing in it is unpickled."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = [n.removesuffix(".npy") for n in archive.namelist()]
            places = places_of(names, targets)
            columns = {n: _array(archive, n) for n in used(places) if n != places.get("probs")}
            if isinstance(places.get("probs"), str):
                yield from _npz_rows(archive, places, columns)
            else:
                yield chunk_of(places, columns)
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
    rows = rows_at_once(shape[1])
    blocks = _blocks(archive, matrix, rows) if not fortran else iter([_array(archive, matrix)])
    first = 0
    for block in blocks:
        block_rows = slice(first, first + len(block))
        first += len(block)
        chunk = chunk_of({k: v for k, v in places.items() if k != "probs"}, columns)
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
