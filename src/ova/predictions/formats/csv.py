"""Predictions in CSV with a header."""

import csv
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyarrow import csv as arrow

from ova.files import reading
from ova.predictions.columns import Predictions
from ova.predictions.formats.layout import Chunk, chunk_of, columns_of, places_of, used


def chunks(path: Path, targets: bool) -> Iterator[Chunk | Predictions]:
    """Chunks of a CSV file with a header."""
    with reading(path, "a CSV file of numbers"):
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            names = [name.strip() for name in next(csv.reader(file), [])]
        places = places_of(names, targets)
        wanted = used(places)
        floats = {name: pa.float64() for name in wanted if name != places.get("id")}
        options = arrow.ConvertOptions(column_types=floats, include_columns=wanted)
        read = arrow.ReadOptions(block_size=1 << 24, column_names=names, skip_rows=1)
        with arrow.open_csv(path, read_options=read, convert_options=options) as reader:
            for batch in reader:
                yield chunk_of(places, columns_of(batch, places))
