"""A column beside the predictions of a file, such as the group that each row belongs to."""

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow

from ova.errors import BadInput
from ova.files import reading
from ova.predictions.formats.layout import NAMES
from ova.predictions.parquet import open_parquet


def column(path: Path, name: str) -> list[Any]:
    """The cells of a column in the order in which `read_any` gives the rows: that of their ids."""
    with reading(path, "a file of predictions"):
        found = _columns(path, name)
    cells, ids = found.pop(name), next(iter(found.values()), None)
    if ids is None or np.asarray(ids).dtype.kind not in "iu":  # row numbers serve as ids
        return cells
    return [cells[row] for row in np.argsort(ids, kind="stable")]


def _columns(path: Path, name: str) -> dict[str, list[Any]]:
    """The column, and that of the ids where there is one."""

    def wanted(names: list[str]) -> list[str]:
        if name not in names:
            have = ", ".join(map(repr, names[:9]))
            raise BadInput(f"there is no column {name!r}; the columns are {have}")
        ids = [n for n in names if n.lower() in NAMES["id"] and n != name]
        return [name, *ids[:1]]

    if path.suffix.lower() == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return {n: arrays[n].tolist() for n in wanted(arrays.files)}
    if path.suffix.lower() == ".parquet":
        with open_parquet(path) as file:
            return dict(file.read(wanted(file.schema_arrow.names)).to_pydict())
    if path.suffix.lower() in (".jsonl", ".ndjson", ".arrow", ".feather"):
        return _of_table(path, wanted)
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as text:
        names = [n.strip() for n in next(csv.reader(text), [])]
    read = arrow.ReadOptions(column_names=names, skip_rows=1)
    only = arrow.ConvertOptions(include_columns=wanted(names), strings_can_be_null=True)
    return dict(arrow.read_csv(path, read_options=read, convert_options=only).to_pydict())


def _of_table(path: Path, wanted: Callable[[list[str]], list[str]]) -> dict[str, list[Any]]:
    """The columns of JSON lines or of an Arrow file."""
    from ova.predictions.formats import ipc, jsonl

    if path.suffix.lower() in (".jsonl", ".ndjson"):
        table = pa.concat_tables(jsonl.tables(path), promote_options="default")
    else:
        with ipc.batches(path) as (schema, found):
            table = pa.Table.from_batches(found, schema)
    return dict(table.select(wanted(table.column_names)).to_pydict())
