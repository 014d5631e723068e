"""Rows from files in chunks, in order; a row that cannot be read is marked, never lost."""

import csv
import gzip
import io
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any, TextIO

from ova.data.folders import ENDINGS
from ova.errors import BadInput
from ova.files import checked, not_utf8, parsed, reading
from ova.userdata.encoding import PACKED, UTF8, encoding_of

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


def whole(path: Path) -> Frame:
    """All rows of a file, or all images below a folder."""
    parts = list(chunks(path))
    if not parts:
        raise BadInput(f"{path}: there are no rows in it")
    columns = {name: [v for part in parts for v in part.columns[name]] for name in parts[0].columns}
    numbered = enumerate((part, row) for part in parts for row in range(len(part)))
    return Frame(columns, {i: part.bad[row] for i, (part, row) in numbered if row in part.bad})


def chunks(path: Path, column: str = "text") -> Iterator[Frame]:
    """The rows of a CSV, TSV or Parquet file, lines of a text file, or the images below a folder."""
    if path.is_dir():
        return in_pieces(images_below(path), CHUNK)
    if not path.is_file():
        raise BadInput(f"there is no file or folder {path}")
    if path.suffix.lower() in (".parquet", ".pq"):
        return parquet(path)
    if ending(path) in (".csv", ".tsv", ".txt", ".jsonl"):
        return text_file(path, column)
    raise BadInput(
        f"{path}: wanted a folder of images, .csv, .tsv, .jsonl or .txt (also with .gz), or .parquet"
    )


def ending(path: Path) -> str:
    """What kind of text a file has, also where it is packed.

    >>> ending(Path("a.CSV")), ending(Path("mails.jsonl.gz"))
    ('.csv', '.jsonl')
    """
    name = path.with_suffix("") if path.suffix.lower() == PACKED else path
    return name.suffix.lower()


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


def in_pieces(files: Iterable[str], size: int) -> Iterator[Frame]:
    """Image paths, so many at a time."""
    rest = iter(files)
    while piece := list(islice(rest, size)):
        yield Frame({FILE: piece})


def parquet(path: Path) -> Iterator[Frame]:
    """The rows of a Parquet file; null is None."""
    from pyarrow.parquet import ParquetFile

    with reading(path, "a whole Parquet file"), ParquetFile(path) as file:
        check_names(file.schema_arrow.names, path)
        for batch in file.iter_batches(CHUNK):
            yield Frame(batch.to_pydict())


def check_names(names: Sequence[str], source: object) -> None:
    """Refuse a name that comes twice; columns without a name are told apart by nobody."""
    twice = [name for name, times in Counter(names).items() if name and times > 1]
    if twice:
        raise BadInput(f"{source}: two columns are called {twice[0]!r}")


def text_file(path: Path, column: str) -> Iterator[Frame]:
    """The rows of a CSV or TSV file with a header or of JSON lines, or the lines of a plain text file."""
    kind = ending(path)
    opened = gzip.open if path.suffix.lower() == PACKED else open
    # Bytes that are no UTF-8 become lone surrogates, so that only their own cells are bad.
    with (
        reading(path, "a whole file of text"),
        # JSON is UTF-8 by definition.
        opened(
            path,
            "rt",
            encoding=UTF8 if kind == ".jsonl" else encoding_of(path),
            errors="surrogateescape",
            newline="",
        ) as file,
    ):
        if kind == ".txt":
            yield from lines(file, column, CHUNK)
        elif kind == ".jsonl":
            yield from objects(file, str(path), CHUNK)
        else:
            yield from table_lines(file, str(path), CHUNK, "\t" if kind == ".tsv" else "")


def objects(file: Iterable[str], source: str, size: int) -> Iterator[Frame]:
    """The rows of JSON lines, each an object with the names that the first has; one left out is a gap."""
    filled = (line for line in file if line.strip())
    first = next(filled, "")
    names = [*checked(parsed(first, f"{source}, line 1"), (), f"{source}, line 1")] if first else []
    if not names:
        raise BadInput(f'{source}: it is empty; each line is an object, such as {{"text": ...}}')
    rows = chain([first], filled)
    while piece := list(islice(rows, size)):
        read = [values_of(line, names) for line in piece]
        columns = {name: [row.get(name) for row, _ in read] for name in names}
        yield Frame(columns, {i: why for i, (_, why) in enumerate(read) if why})


def values_of(line: str, names: Sequence[str]) -> tuple[dict[str, Any], str]:
    """The object in a line, and what is wrong with it."""
    if not_utf8(line):
        return {}, "not UTF-8"
    try:
        row = checked(parsed(line, "it"), (), "it")
    except BadInput:
        return {}, "no JSON object"
    more = [name for name in row if name not in names]
    nested = [name for name, value in row.items() if isinstance(value, dict | list)]
    if more or nested:
        said = f"{more[0]!r}, which the first row has not" if more else f"a list in {nested[0]!r}"
        return {}, f"it has {said}"
    return row, ""


def table_lines(file: TextIO, source: str, size: int, delimiter: str = "") -> Iterator[Frame]:
    """The rows of text with a header; each cell is text."""
    first = file.readline()
    mark = delimiter or (";" if ";" in first and "," not in first else ",")
    csv.field_size_limit(LARGEST_CELL)
    reader = csv.reader(chain([first], file), delimiter=mark)
    with reading(source, "a table with a header"):
        header = next(reader, [])
    if not header or not first.strip():
        raise BadInput(f"{source}: it is empty; a header with the names of the columns comes first")
    check_names(header, source)
    rows = readable(reader, len(header))
    while piece := list(islice(rows, size)):
        columns = {name: [row[k] for row, _ in piece] for k, name in enumerate(header)}
        yield Frame(columns, {i: why for i, (_, why) in enumerate(piece) if why})


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


def lines(file: TextIO, column: str, size: int) -> Iterator[Frame]:
    """The lines of a stream, one text each."""
    while piece := [line.rstrip("\r\n") for line in islice(file, size)]:
        yield Frame({column: piece}, {i: "not UTF-8" for i, t in enumerate(piece) if not_utf8(t)})


def standard_input(column: str, size: int) -> Iterator[Frame]:
    """The lines of standard input, or without a column for them its rows below a header."""
    raw = sys.stdin.buffer  # UTF-8, whatever the terminal says
    file = io.TextIOWrapper(raw, encoding="utf-8", errors="surrogateescape", newline="")
    return lines(file, column, size) if column else table_lines(file, "standard input", size)
