"""What must be refused, said by code that shares nothing with what is attacked: slow and obvious.

A file that numpy, pyarrow or the csv of Python cannot read, or whose numbers cannot be probabilities
and targets of three classes, must be refused. Of what this file does not know, it says nothing.
"""

import csv
import io
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torture.mutations import EITHER, REFUSE

SIZE = 1 << 27  # bytes of an array, above which nothing is read here
PREDICTIONS = {"target", "p_0", "p_1", "p_2"}  # and ids, or not
SETS = ("test", "held", "far")  # the names of files of predictions
WHOLE = ("config.json", "model.json", "recipe.json")  # files of one JSON value that is needed
Columns = dict[str, list[Any]]


class Unreadable(Exception):
    """It can be no file of its kind."""


def verdict(path: Path, sound: Path) -> str:
    """Whether a damaged file must be refused, where that can be said."""
    if not path.is_file() or path.is_symlink() or path.read_bytes() == sound.read_bytes():
        return EITHER
    if path.name not in WHOLE and path.stem not in SETS:
        return EITHER
    try:
        columns = READ[path.suffix](path)
    except Unreadable:
        return REFUSE
    except Exception:  # a reader that fails at what it should say: nothing follows
        return EITHER
    needed = PREDICTIONS - unread(path)
    if columns.keys() - {"id"} - unread(path) != needed:
        return EITHER
    return REFUSE if wrong(columns, outside=bool(unread(path))) else EITHER


def unread(path: Path) -> set[str]:
    """The columns that nobody asks of this file: what is outside has no targets."""
    return {"target"} if path.stem == "far" else set()


def wrong(columns: Columns, outside: bool) -> bool:
    """Whether these cannot be predictions of three classes."""
    columns = {name: held for name, held in columns.items() if not (outside and name == "target")}
    lengths = {len(column) for column in columns.values()}
    if lengths == {0} or len(lengths) > 1:
        return True
    p = [number(v) for name in PREDICTIONS - {"target"} for v in columns[name]]
    if not all(-1e-3 <= v <= 1 + 1e-3 for v in p):  # NaN neither
        return True
    y = [] if outside else [number(v) for v in columns["target"]]
    if not all(v == int(v) and -1 <= v < 3 for v in y if math.isfinite(v)):
        return True
    if not all(map(math.isfinite, y)):
        return True
    ids = [number(v) for v in columns.get("id", [])]
    if any(map(math.isnan, ids)):  # names, which may be anything
        return False
    return any(math.isinf(v) or v != int(v) for v in ids) or len(set(ids)) < len(ids)


def number(value: Any) -> float:
    """What a cell says, or NaN."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def csv_columns(path: Path) -> Columns:
    """The cells of a table of text."""
    csv.field_size_limit(1 << 30)
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError:
        raise Unreadable from None
    rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    if not rows or len(set(map(len, rows))) > 1:
        raise Unreadable
    if len(set(rows[0])) < len(rows[0]):
        return {}
    return {name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}


def npz_columns(path: Path) -> Columns:
    """The arrays that predictions have; others are not looked at."""
    import zipfile

    import numpy as np

    try:
        with zipfile.ZipFile(path) as archive:
            infos = archive.infolist()
            names = {info.filename.removesuffix(".npy") for info in infos}
            known = (PREDICTIONS | {"id"}) - unread(path)
            wanted = [i for i in infos if i.filename.removesuffix(".npy") in known]
            if len(names) < len(infos) or any(i.file_size > SIZE for i in wanted):
                return {}
            held = {i.filename: archive.read(i) for i in wanted}
        arrays = {n: np.load(io.BytesIO(data), allow_pickle=False) for n, data in held.items()}
    except Exception:
        raise Unreadable from None
    if any(array.dtype.kind not in "iuf" or array.ndim != 1 for array in arrays.values()):
        return {}
    return {name.removesuffix(".npy"): array.tolist() for name, array in arrays.items()}


def parquet_columns(path: Path) -> Columns:
    """The columns of a table of Arrow."""
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        table = file.read([n for n in file.schema_arrow.names if n not in unread(path)])
    except Exception:
        raise Unreadable from None
    if len(set(table.column_names)) < len(table.column_names):
        return {}
    return {name: table[name].to_pylist() for name in table.column_names}


def json_value(path: Path) -> Columns:
    """Nothing, of one value of JSON."""

    def none(_: str) -> None:
        raise ValueError

    try:
        json.loads(path.read_bytes().decode(), parse_constant=none)
    except (ValueError, RecursionError):
        raise Unreadable from None
    return {}


READ: dict[str, Callable[[Path], Columns]] = {
    ".csv": csv_columns,
    ".npz": npz_columns,
    ".parquet": parquet_columns,
    ".json": json_value,
}
