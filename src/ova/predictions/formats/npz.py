"""Predictions in NumPy's .npz: the matrix is read by rows, and nothing is unpickled."""

import math
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.files import reading
from ova.predictions.columns import Array, Predictions
from ova.predictions.formats.layout import MATRICES, Chunk, Places, chunk_of, places_of, used
from ova.predictions.formats.wanted import Wanted
from ova.predictions.parquet import rows_at_once

Opened = tuple[Any, tuple[int, ...], bool, np.dtype[Any]]  # file, shape, column by column, type


def chunks(path: Path, wanted: Wanted) -> Iterator[Chunk | Predictions]:
    """Chunks of an .npz file; the matrix is read by rows, nothing in it is unpickled."""
    with reading(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        names = [n.removesuffix(".npy") for n in archive.namelist() if n.endswith(".npy")]
        places = places_of(names, wanted)
        matrix = next((name for name in MATRICES if isinstance(places.get(name), str)), "")
        columns = {n: _column(archive, n) for n in used(places) if n != places.get(matrix)}
        name = str(places.get(matrix))
        if matrix and "positive" in wanted.columns and _is_column(archive, name):
            columns[name], matrix = _column(archive, name), ""
        if matrix:
            yield from _npz_rows(archive, places, columns, matrix)
        else:
            yield chunk_of(places, columns)


def _npz_rows(
    archive: zipfile.ZipFile, places: Places, columns: Chunk, ours: str
) -> Iterator[Chunk]:
    matrix = str(places[ours])
    with opened(archive, matrix) as (_, shape, fortran, _):
        pass
    if len(shape) != 2:
        raise BadInput(
            f"{matrix} must be a matrix of N rows and K classes, not of shape {shape}; "
            "of one column for two classes say whose it is: --columns positive=1"
        )
    for name, column in columns.items():
        if column.shape != shape[:1]:
            raise BadInput(f"{name} has shape {column.shape}, but {matrix} has {shape[0]} rows")
    rows = rows_at_once(shape[1])
    blocks = _blocks(archive, matrix, rows) if not fortran else iter([_array(archive, matrix)])
    first = 0
    for block in blocks:
        block_rows = slice(first, first + len(block))
        first += len(block)
        chunk = chunk_of({k: v for k, v in places.items() if k not in (ours, "classes")}, columns)
        rest = {"classes": np.array(places["classes"])} if "classes" in places else {}
        yield {name: column[block_rows] for name, column in chunk.items()} | {ours: block} | rest


def _is_column(archive: zipfile.ZipFile, name: str) -> bool:
    """Whether an array has one number per row."""
    with opened(archive, name) as (_, shape, _, _):
        return len(shape) == 1


@contextmanager
def opened(archive: zipfile.ZipFile, name: str) -> Iterator[Opened]:
    """A member with its header read, and believed only where the member is as long as it says."""
    form, member = np.lib.format, archive.getinfo(f"{name}.npy")
    with archive.open(member) as file:
        version = form.read_magic(file)
        read = form.read_array_header_1_0 if version == (1, 0) else form.read_array_header_2_0
        shape, fortran, dtype = read(file)
        if dtype.hasobject:
            raise BadInput(f"{name} holds Python objects, which are not read; save plain numbers")
        size = math.prod(shape) * dtype.itemsize
        if min(shape, default=0) < 0 or size > member.file_size:
            raise BadInput(f"{name} says shape {shape}, but it has {member.file_size} bytes")
        yield file, shape, fortran, dtype


def _blocks(archive: zipfile.ZipFile, name: str, rows: int) -> Iterator[Array]:
    with opened(archive, name) as (file, shape, _, dtype):
        size = shape[1] * dtype.itemsize
        for start in range(0, shape[0], rows):
            count = min(rows, shape[0] - start)
            data = file.read(count * size)
            if len(data) < count * size:
                raise BadInput(f"{name} ends before its {shape[0]} rows")
            yield np.frombuffer(data, dtype).reshape(count, shape[1])


def _array(archive: zipfile.ZipFile, name: str) -> Array:
    with opened(archive, name) as (file, shape, fortran, dtype):
        # What is unpacked decides how much memory is used, not what the header promises.
        data = file.read(math.prod(shape) * dtype.itemsize)
        return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


def _column(archive: zipfile.ZipFile, name: str) -> Array:
    column = _array(archive, name)
    if column.ndim != 1:
        raise BadInput(f"{name} has shape {column.shape}, not one number per row")
    return column
