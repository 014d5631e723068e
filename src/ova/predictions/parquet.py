"""Predictions as Parquet files, written atomically and read in chunks."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ova.errors import BadInput
from ova.files import write_beside
from ova.predictions.columns import COLUMNS, Array, Predictions, own

KEY = b"ova.predictions"  # what the file is, beside the columns: classes, normalised
ROWS = 1 << 20  # rows of a chunk, fewer where the matrix is wide
CELLS = 1 << 24


@contextmanager
def writer(path: Path) -> Iterator[Callable[[Predictions], None]]:
    """A function that adds batches to the file at `path`, which appears when all are written.

    with writer(path) as add:
        for batch in batches:
            add(batch)
    """
    opened: list[pq.ParquetWriter] = []
    with write_beside(Path(path)) as beside:

        def add(batch: Predictions) -> None:
            table = _table(batch)
            if not opened:
                # Floating columns hardly repeat: a dictionary of them costs time and saves nothing.
                few = ["target", "prediction"]
                opened.append(pq.ParquetWriter(beside, table.schema, use_dictionary=few))
            if not opened[0].schema.equals(table.schema, check_metadata=True):
                raise BadInput("a batch differs from the first in its columns, types or classes")
            width = None if batch.probs is None else batch.probs.shape[1]
            opened[0].write_table(table, row_group_size=rows_at_once(width))

        try:
            yield add
        finally:
            for file in opened:
                file.close()
        if not opened:
            raise BadInput(f"no predictions were given for {path}")


def write(path: Path, predictions: Predictions) -> None:
    """Write predictions that are in memory."""
    with writer(path) as add:
        add(predictions)


def read(path: Path, *, probs: bool = True) -> Predictions:
    """All rows of a file of ours; without `probs` the matrix stays on disk."""
    with open_parquet(path) as file:
        facts = _facts(file, path)
        table = file.read(columns=_present(file, probs))
    return _predictions(table, facts)


def read_chunks(path: Path, *, probs: bool = True) -> Iterator[Predictions]:
    """The rows of a file of ours in chunks that fit in memory whatever the number of classes."""
    with open_parquet(path) as file:
        facts = _facts(file, path)
        rows = rows_at_once(facts["classes"] if probs else None)
        for batch in file.iter_batches(rows, columns=_present(file, probs)):
            yield _predictions(pa.Table.from_batches([batch]), facts)


def is_ours(file: pq.ParquetFile) -> bool:
    """Whether the file was written by `writer`."""
    return KEY in (file.schema_arrow.metadata or {})


def has_matrix(path: Path) -> bool:
    """Whether the file holds all probabilities; only its schema is read."""
    with open_parquet(path) as file:
        return "probs" in file.schema_arrow.names


def open_parquet(path: Path) -> pq.ParquetFile:
    """The opened file, or an error that names it."""
    try:
        return pq.ParquetFile(path)
    except FileNotFoundError:
        raise BadInput(f"there is no file {path}") from None
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path} is not a whole Parquet file: {error}") from None


def rows_at_once(width: int | None) -> int:
    """Rows in memory at a time: about a million, fewer where a matrix of that width comes along."""
    return max(1, min(ROWS, CELLS // (width or 1)))


def to_matrix(column: Any, width: int | None) -> Array:
    """A column of lists of one length as a matrix, without a copy per row."""
    chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(chunk, pa.ChunkedArray):  # no chunk at all
        return np.empty((0, width or 1), np.float32)
    flat = chunk.flatten().to_numpy(zero_copy_only=False)
    return np.asarray(flat).reshape(len(chunk), -1) if len(chunk) else flat.reshape(0, width or 1)


def _table(batch: Predictions) -> pa.Table:
    facts = {"version": 1, "classes": batch.classes, "normalised": batch.normalised}
    arrays = {
        n: pa.array(c) for n in COLUMNS if n != "probs" and (c := getattr(batch, n)) is not None
    }
    if batch.probs is not None:
        flat = pa.array(batch.probs.reshape(-1))
        arrays["probs"] = pa.FixedSizeListArray.from_arrays(flat, batch.probs.shape[1])
    return pa.table(arrays, metadata={KEY: json.dumps(facts).encode()})


def _facts(file: pq.ParquetFile, path: Path) -> dict[str, Any]:
    if not is_ours(file):
        raise BadInput(f"{path} was not written by ova; `ova evaluate` reads foreign files")
    try:
        facts = json.loads(file.schema_arrow.metadata[KEY])
        return {"classes": facts["classes"], "normalised": facts["normalised"]}
    except (ValueError, KeyError, TypeError):
        raise BadInput(f"{path} does not say its classes in a way ova knows") from None


def _present(file: pq.ParquetFile, probs: bool) -> list[str]:
    return [n for n in file.schema_arrow.names if n in COLUMNS and (probs or n != "probs")]


def _predictions(table: pa.Table, facts: dict[str, Any]) -> Predictions:
    columns: dict[str, Any] = {
        n: own(table[n].to_numpy()) for n in table.column_names if n != "probs"
    }
    if "probs" in table.column_names:
        columns["probs"] = to_matrix(table["probs"], facts["classes"])
    missing = {"id", "target", "prediction", "confidence"} - set(columns)
    if missing:
        raise BadInput(f"the file has no column {', '.join(sorted(missing))}")
    return Predictions(**columns, **facts)
