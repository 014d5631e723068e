"""Predictions in Arrow files: Feather, and streams of record batches."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from ova.files import reading
from ova.predictions.columns import Predictions
from ova.predictions.formats.layout import Chunk, chunk_of, columns_of, places_of, used
from ova.predictions.formats.wanted import Wanted

MAGIC = b"ARROW1"  # of a file; a stream has none


def chunks(path: Path, wanted: Wanted) -> Iterator[Chunk | Predictions]:
    """Chunks of an Arrow file, its own record batches."""
    with reading(path, "an Arrow or Feather file"), batches(path) as (schema, found):
        places = places_of(list(schema.names), wanted)
        columns = used(places)
        for batch in found:
            batch.validate(full=True)  # lengths and offsets that a damaged file made up
            yield chunk_of(places, columns_of(batch.select(columns), places))


@contextmanager
def batches(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """The schema and the record batches of a file or of a stream."""
    with path.open("rb") as file:
        is_file = file.read(len(MAGIC)) == MAGIC
    with pa.OSFile(str(path)) as source:
        if is_file:
            opened = pa.ipc.open_file(source)
            yield opened.schema, (opened.get_batch(i) for i in range(opened.num_record_batches))
        else:
            stream = pa.ipc.open_stream(source)
            yield stream.schema, iter(stream)
