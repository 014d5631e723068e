"""Answers written as CSV, JSON lines or Parquet, atomically, as they come."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import islice
from math import isnan
from pathlib import Path
from typing import TextIO

from ova.data.cells import as_number
from ova.errors import BadInput
from ova.files import write_beside
from ova.modelfolder.answer import Answer

OPTIONAL = ("nearest", "set", "kept")  # where they were asked for
COLUMNS = tuple(field.name for field in fields(Answer) if field.name not in OPTIONAL)
Columns = Sequence[str]
ROWS = 10_000  # of a Parquet row group


def cell(answer: Answer, column: str) -> object:
    """What an answer has in a column, which may be one of the input's own."""
    return answer.kept[column] if column in answer.kept else getattr(answer, column)


def clean(value: object) -> object:
    """Text that can be written as UTF-8."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


def plain(value: object) -> object:
    """A value that JSON has: others, such as dates of Parquet, as text."""
    return clean(value) if value is None or isinstance(value, str | int | float) else str(value)


def inert(value: object) -> object:
    """Text that a spreadsheet shows as it is: a stranger's cell must not become a formula there.

    >>> inert("=1+1"), inert("-1.5"), inert("a=b")
    ("'=1+1", '-1.5', 'a=b')
    """
    text = clean(value)
    formula = isinstance(text, str) and text.startswith(("=", "+", "-", "@", "\t", "\r"))
    return f"'{text}" if formula and isnan(as_number(text)) else text


def separated(
    answers: Iterable[Answer],
    file: TextIO,
    columns: Columns = COLUMNS,
    delimiter: str = ",",
    written: Callable[[object], object] = clean,
) -> None:
    """One line per answer, with a header."""
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for answer in answers:
        cells = (cell(answer, name) for name in columns)  # six digits of a number are enough
        writer.writerow([f"{v:.6g}" if isinstance(v, float) else written(v) for v in cells])
        file.flush()


def csv_file(path: Path, answers: Iterable[Answer], columns: Columns = COLUMNS) -> None:
    """A CSV file."""
    with path.open("w", encoding="utf-8", newline="") as file:
        separated(answers, file, columns, written=inert)


def json_lines(path: Path, answers: Iterable[Answer], columns: Columns = COLUMNS) -> None:
    """One JSON object per line."""
    with path.open("w", encoding="utf-8") as file:
        for answer in answers:
            row = {name: plain(cell(answer, name)) for name in columns}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def parquet(path: Path, answers: Iterable[Answer], columns: Columns = COLUMNS) -> None:
    """A Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = dict.fromkeys(("confidence", "runner_up_confidence", "score"), pa.float64())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    rows = iter(answers)
    with pq.ParquetWriter(path, schema) as writer:
        while piece := list(islice(rows, ROWS)):
            table = {name: [plain(cell(a, name)) for a in piece] for name in columns}
            table |= {
                name: [None if v is None else str(v) for v in table[name]]
                for name in columns
                if name not in kinds
            }
            writer.write_table(pa.table(table, schema))


WRITERS: Mapping[str, Callable[[Path, Iterable[Answer], Columns], None]] = {
    ".csv": csv_file,
    ".jsonl": json_lines,
    ".parquet": parquet,
}


def check(path: Path) -> None:
    """Refuse an ending that we do not write."""
    if path.suffix.lower() not in WRITERS:
        raise BadInput(f"{path}: the ending says the format, one of {', '.join(WRITERS)}")


def write(path: Path, answers: Iterable[Answer], columns: Columns = COLUMNS) -> None:
    """Write all answers, atomically."""
    check(path)
    with write_beside(path) as beside:
        WRITERS[path.suffix.lower()](beside, answers, columns)
