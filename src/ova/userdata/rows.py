"""Rows from files in chunks, in order; a row that cannot be read is marked, never lost."""

import csv
import io
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from ova.data.folders import ENDINGS
from ova.errors import BadInput

CHUNK = 1024  # rows that are in memory at a time while predicting
LARGEST_CELL = 1 << 24
FILE = "file"  # the column of image paths


@dataclass(frozen=True)
class Frame:
    """Columns of equal length, and what is wrong with those rows that could not be read."""

    columns: Mapping[str, Sequence[Any]]
    bad: Mapping[int, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return max((len(column) for column in self.columns.values()), default=0)

    def column(self, name: str, source: object, option: str = "") -> Sequence[Any]:
        """One column; a wrong name says which there are."""
        if name not in self.columns:
            hint = f" ({option} names it)" if option else ""
            have = ", ".join(map(repr, self.columns))
            raise BadInput(f"{source}: there is no column {name!r}{hint}; the columns are {have}")
        return self.columns[name]

    def take(self, rows: Sequence[int]) -> "Frame":
        """The chosen rows."""
        columns = {name: [column[i] for i in rows] for name, column in self.columns.items()}
        return Frame(columns, {new: self.bad[i] for new, i in enumerate(rows) if i in self.bad})


def whole(path: Path) -> Frame:
    """All rows of a file, or all images below a folder."""
    parts = list(chunks(path))
    if not parts:
        raise BadInput(f"{path}: there are no rows in it")
    columns = {name: [v for part in parts for v in part.columns[name]] for name in parts[0].columns}
    bad: dict[int, str] = {}
    first = 0
    for part in parts:
        bad |= {first + row: why for row, why in part.bad.items()}
        first += len(part)
    return Frame(columns, bad)


def chunks(path: Path, size: int = CHUNK) -> Iterator[Frame]:
    """The rows of a CSV, TSV, Parquet or plain text file, or the images below a folder."""
    if path.is_dir():
        return in_pieces(images_below(path), size)
    if not path.is_file():
        raise BadInput(f"there is no file or folder {path}")
    ending = path.suffix.lower()
    if ending in (".parquet", ".pq"):
        return parquet(path, size)
    if ending in (".csv", ".tsv"):
        return separated(path, size)
    if ending == ".txt":
        return text_lines(path, size)
    raise BadInput(f"{path}: wanted a folder of images, .csv, .tsv, .parquet or .txt")


def images_below(folder: Path) -> list[str]:
    """All image files below a folder, by name; what starts with a dot is not looked at."""
    found = []
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        names = (n for n in sorted(files) if n.lower().endswith(ENDINGS) and n[0] != ".")
        found += [os.path.join(place, name) for name in names]
    if not found:
        raise BadInput(f"{folder}: there is no image in it ({', '.join(ENDINGS)})")
    return found


def in_pieces(files: Sequence[str], size: int) -> Iterator[Frame]:
    """Image paths, so many at a time."""
    for start in range(0, len(files), size):
        yield Frame({FILE: files[start : start + size]})


def parquet(path: Path, size: int) -> Iterator[Frame]:
    """The rows of a Parquet file; null is None."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(set(names)) < len(names):
                raise BadInput(f"{path}: two columns have the same name")
            for batch in file.iter_batches(size):
                yield Frame(batch.to_pydict())
    except (pa.ArrowException, OSError) as error:
        raise BadInput(f"{path}: truncated, or not Parquet ({error})") from None


def separated(path: Path, size: int) -> Iterator[Frame]:
    """The rows of a CSV or TSV file with a header."""
    # Bytes that are no UTF-8 become lone surrogates, so that only their own cells are bad.
    with path.open(encoding="utf-8-sig", errors="surrogateescape", newline="") as file:
        yield from table_lines(file, str(path), size, "\t" if path.suffix.lower() == ".tsv" else "")


def table_lines(file: TextIO, source: str, size: int, delimiter: str = "") -> Iterator[Frame]:
    """The rows of text with a header; each cell is text."""
    first = file.readline()
    mark = delimiter or (";" if ";" in first and "," not in first else ",")
    csv.field_size_limit(LARGEST_CELL)
    reader = csv.reader(chained(first, file), delimiter=mark)
    header = next(reader, [])
    if not header or not first.strip():
        raise BadInput(f"{source}: it is empty; a header with the names of the columns comes first")
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise BadInput(f"{source}: two columns are called {twice[0]!r}")
    rows = readable(reader, len(header))
    while piece := list(islice(rows, size)):
        columns = {name: [row[k] for row, _ in piece] for k, name in enumerate(header)}
        yield Frame(columns, {i: why for i, (_, why) in enumerate(piece) if why})


def chained(first: str, file: Iterable[str]) -> Iterator[str]:
    """The line that was read already, then the others."""
    yield first
    yield from file


def readable(reader: Iterator[list[str]], width: int) -> Iterator[tuple[list[str], str]]:
    """Each row with as many cells as the header, and what was wrong with it."""
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield [""] * width, str(error)
            continue
        if not row and width > 1:
            continue  # an empty line is no row
        cells = row or [""]
        why = "" if len(cells) == width else f"{len(cells)} cells where the header has {width}"
        if not why and any(not_utf8(cell) for cell in cells):
            why = "not UTF-8"
        yield (cells + [""] * width)[:width], why


def text_lines(path: Path, size: int, column: str = "text") -> Iterator[Frame]:
    """The lines of a plain text file, one text each."""
    with path.open(encoding="utf-8-sig", errors="surrogateescape") as file:
        yield from lines(file, size, column)


def lines(file: TextIO, size: int, column: str = "text") -> Iterator[Frame]:
    """The lines of a stream, one text each."""
    while piece := [line.rstrip("\r\n") for line in islice(file, size)]:
        yield Frame({column: piece}, {i: "not UTF-8" for i, t in enumerate(piece) if not_utf8(t)})


def standard_input() -> TextIO:
    """Standard input as UTF-8, whatever the terminal says."""
    return io.TextIOWrapper(
        sys.stdin.buffer, encoding="utf-8", errors="surrogateescape", newline=""
    )


def not_utf8(text: str) -> bool:
    r"""Whether some bytes of the text could not be decoded.

    >>> not_utf8("caf\udce9")
    True
    """
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)
