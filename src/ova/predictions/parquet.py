"""Predictions as Parquet files, written atomically and read in chunks."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ova.errors import BadInput
from ova.files import checked, parsed, reading, write_beside
from ova.predictions.columns import COLUMNS, MATRICES, Array, Predictions, own, whole

SCORE = "score_"  # what the name of a score's column starts with
KEY = b"ova.predictions"  # what the file is, beside the columns: classes, normalised
ROWS = 1 << 20  # rows of a chunk, fewer where the matrix is wide
CELLS = 1 << 24
WHOLE = {"id": np.int64, "target": np.int32, "prediction": np.int32}  # the others are floating


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
            width = sum(m.shape[1] for n in MATRICES if (m := getattr(batch, n)) is not None)
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
    """All rows of a file of ours; without `probs` the matrices stay on disk."""
    with open_parquet(path) as file:
        facts = _facts(file, path)
        return _predictions(file.read(columns=_present(file, probs)), facts)


def read_chunks(path: Path) -> Iterator[Predictions]:
    """The rows of a file of ours in chunks that fit in memory whatever the number of classes."""
    with open_parquet(path) as file:
        facts = _facts(file, path)
        names = _present(file, probs=True)
        kinds = [file.schema_arrow.field(name).type for name in names if name in MATRICES]
        rows = rows_at_once(sum(getattr(kind, "list_size", 1000) for kind in kinds))
        for batch in file.iter_batches(rows, columns=names):
            yield _predictions(pa.Table.from_batches([batch]), facts)


def is_ours(file: pq.ParquetFile) -> bool:
    """Whether the file was written by `writer`."""
    return KEY in (file.schema_arrow.metadata or {})


def has_matrix(path: Path) -> bool:
    """Whether the file holds all probabilities; only its schema is read."""
    return "probs" in _names(path)


def lacks(path: Path, scores: Iterable[str], *, features: bool = False) -> bool:
    """Whether the file is without a score, or without features where they are asked for."""
    wanted = {SCORE + name for name in scores} | ({"features"} if features else set())
    return not wanted <= set(_names(path))


def _names(path: Path) -> list[str]:
    with open_parquet(path) as file:
        return list(file.schema_arrow.names)


@contextmanager
def open_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """The opened file; what is wrong with it while it is read is said with its name."""
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    with reading(path, "a whole Parquet file"), pq.ParquetFile(path) as file:
        yield file


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
    columns = {n: c for n in COLUMNS if (c := getattr(batch, n)) is not None}
    columns |= {SCORE + name: column for name, column in batch.scores.items()}
    arrays = {n: _lists(c) if n in MATRICES else pa.array(c) for n, c in columns.items()}
    return pa.table(arrays, metadata={KEY: json.dumps(facts).encode()})


def _lists(x: Array) -> pa.Array:
    return pa.FixedSizeListArray.from_arrays(pa.array(x.reshape(-1)), x.shape[1])


def _facts(file: pq.ParquetFile, path: Path) -> dict[str, Any]:
    if not is_ours(file):
        raise BadInput(f"{path} was not written by ova; `ova evaluate` reads foreign files")
    facts = checked(parsed(file.schema_arrow.metadata[KEY].decode(), f"{path}"), (), f"{path}")
    classes, normalised = facts.get("classes"), facts.get("normalised")
    known = classes is None or (type(classes) is int and classes > 0)
    if not known or not (normalised is None or isinstance(normalised, bool)):
        raise BadInput(f"{path} does not say its classes in a way ova knows")
    return {"classes": classes, "normalised": normalised}


def _present(file: pq.ParquetFile, probs: bool) -> list[str]:
    ours = [n for n in file.schema_arrow.names if n in COLUMNS or n.startswith(SCORE)]
    names = [n for n in ours if probs or n not in MATRICES]
    if twice := [n for n, times in Counter(names).items() if times > 1]:
        raise BadInput(f"two columns are called {twice[0]!r}")
    return names


def _predictions(table: pa.Table, facts: dict[str, Any]) -> Predictions:
    columns: dict[str, Any] = {
        n: to_matrix(table[n], facts["classes"]) if n in MATRICES else _column(table[n], n)
        for n in table.column_names
    }
    more = {n.removeprefix(SCORE): columns.pop(n) for n in table.column_names if n[:6] == SCORE}
    missing = {"id", "target", "prediction", "confidence"} - set(columns)
    if missing:
        raise BadInput(f"the file has no column {', '.join(sorted(missing))}")
    return Predictions(**columns, scores=more, **facts)


def _column(values: pa.ChunkedArray, name: str) -> Array:
    x = own(values.to_numpy())
    if name in WHOLE:
        return whole(x, name, np.dtype(WHOLE[name]))
    if x.dtype not in (np.float32, np.float64):
        raise BadInput(f"{name} must be numbers, not {values.type}")
    return x
