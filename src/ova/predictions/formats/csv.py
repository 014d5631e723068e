"""Predictions in CSV with a header."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow

from ova.files import reading
from ova.predictions.columns import Predictions
from ova.predictions.formats.layout import NAMED, Chunk, chunk_of, columns_of, places_of, used
from ova.predictions.formats.wanted import Wanted


def chunks(path: Path, wanted: Wanted) -> Iterator[Chunk | Predictions]:
    """Chunks of a CSV file with a header."""
    with reading(path, "a CSV file of numbers"):
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = csv.reader(file)
            names = [name.strip() for name in next(lines, [])]
            first = dict(zip(names, next(lines, []), strict=False))
        places = places_of(names, wanted)
        columns = used(places)
        words = {places[ours] for ours in NAMED if ours in places}
        types = {
            name: pa.string() if name in words and is_word(first.get(name, "")) else pa.float64()
            for name in columns
            if name != places.get("id")
        }
        options = arrow.ConvertOptions(
            column_types=types, include_columns=columns, strings_can_be_null=True
        )
        read = arrow.ReadOptions(block_size=1 << 24, column_names=names, skip_rows=1)
        with arrow.open_csv(path, read_options=read, convert_options=options) as reader:
            for batch in reader:
                yield chunk_of(places, columns_of(batch, places))


def is_word(cell: str) -> bool:
    """Whether a cell is the name of a class and no number.

    >>> is_word("cat"), is_word(" 3.0"), is_word("")
    (True, False, False)
    """
    try:
        float(cell or 0)
    except ValueError:
        return True
    return False
