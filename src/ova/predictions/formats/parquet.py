"""Predictions in Parquet, our own columns or anybody's."""

from collections.abc import Iterator
from pathlib import Path

from pyarrow.parquet import ParquetFile

from ova.predictions.columns import Predictions
from ova.predictions.formats.layout import Chunk, chunk_of, columns_of, places_of, used
from ova.predictions.formats.wanted import Wanted
from ova.predictions.parquet import is_ours, open_parquet, read_chunks, rows_at_once


def chunks(path: Path, wanted: Wanted) -> Iterator[Chunk | Predictions]:
    """Chunks of a Parquet file, ours or anybody's."""
    with open_parquet(path) as file:
        if is_ours(file):
            yield from read_chunks(path)
            return
        places = places_of(file.schema_arrow.names, wanted)
        for batch in file.iter_batches(rows_at_once(width(file)), columns=used(places)):
            yield chunk_of(places, columns_of(batch, places))


def width(file: ParquetFile) -> int:
    """Numbers in a row, those in lists too, by the file's own table of contents."""
    groups = (file.metadata.row_group(i) for i in range(file.metadata.num_row_groups))
    cells = sum(g.column(j).num_values for g in groups for j in range(g.num_columns))
    return int(cells // max(1, file.metadata.num_rows))
