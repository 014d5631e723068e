"""Predictions in JSON lines: an object per line, probabilities as numbers or as one list."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from pyarrow import json as arrow

from ova.errors import BadInput
from ova.files import reading
from ova.predictions.columns import Predictions
from ova.predictions.formats.layout import Chunk, chunk_of, columns_of, places_of, used
from ova.predictions.formats.wanted import Wanted

BLOCK = 1 << 24  # bytes that are read at once


def chunks(path: Path, wanted: Wanted) -> Iterator[Chunk | Predictions]:
    """Chunks of a file of JSON lines; each has the names that the first has."""
    places = None
    with reading(path, "a file of JSON lines"):
        for table in tables(path):
            names = table.column_names
            if places is None:
                places = places_of(names, wanted)
            columns = used(places)
            if missing := [name for name in columns if name not in names]:
                raise BadInput(f"after some lines there is no {missing[0]!r} any more")
            yield chunk_of(places, columns_of(table.select(columns), places))
    if places is None:
        raise BadInput("the file has no rows")


def tables(path: Path) -> Iterator[Any]:
    """The lines as Arrow tables, some megabytes at a time."""
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            block += file.readline()
            if block.strip():
                options = arrow.ReadOptions(block_size=max(len(block) + 1, 1 << 12))
                yield arrow.read_json(BytesIO(block), read_options=options)
