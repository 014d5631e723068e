"""Predictions in Parquet, our own columns or anybody's."""

from collections.abc import Iterator
from pathlib import Path

from ova.predictions.columns import Predictions
from ova.predictions.formats.layout import Chunk, chunk_of, columns_of, places_of, used
from ova.predictions.parquet import is_ours, open_parquet, read_chunks, rows_at_once


def chunks(path: Path, targets: bool) -> Iterator[Chunk | Predictions]:
    """Chunks of a Parquet file, ours or anybody's."""
    with open_parquet(path) as file:
        if is_ours(file):
            yield from read_chunks(path)
            return
        names = file.schema_arrow.names
        places = places_of(names, targets)
        lists = "probs" in places and isinstance(places["probs"], str)
        width = 1000 if lists else len(names)  # of a list the width is not known before reading
        for batch in file.iter_batches(rows_at_once(width), columns=used(places)):
            yield chunk_of(places, columns_of(batch, places))
