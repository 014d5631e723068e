"""Data frames, tables, columns and lists in memory, of whatever library, as Arrow tables and lists."""

import sys
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from ova.errors import BadInput


def frame(data: Any) -> pa.Table | None:
    """What has columns with names as an Arrow table; None for anything else."""
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(data, pandas.DataFrame):
        return pa.Table.from_pandas(data, preserve_index=False)
    if isinstance(data, Mapping):
        return pa.table({str(name): listed(column) for name, column in data.items()})
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        return pa.Table.from_pylist(data)
    found = data.to_arrow() if hasattr(data, "to_arrow") else data  # polars
    if isinstance(found, pa.Table):
        return found
    of_columns = hasattr(found, "__arrow_c_stream__") and not hasattr(found, "__array__")
    return pa.table(found) if of_columns or isinstance(found, pa.RecordBatch) else None


def listed(values: Any) -> list[Any]:
    """A list, an array or a column of a data frame as a list."""
    if isinstance(values, str | bytes | Mapping):
        raise BadInput(
            f"this is {short(values)}; wanted a list, an array, a column or a data frame"
        )
    if hasattr(values, "to_pylist"):  # Arrow
        found = values.to_pylist()
    elif hasattr(values, "tolist"):  # numpy, pandas, torch, which bring numbers of Python
        found = values.tolist()
    elif hasattr(values, "to_list"):
        found = values.to_list()
    else:
        try:
            found = list(values)
        except TypeError:
            raise BadInput(
                f"this is {short(values)}; wanted a list, an array, a column or a data frame"
            ) from None
    if not isinstance(found, list):
        raise BadInput(
            f"this is one value, {short(found)}; wanted a list, an array, a column or a data frame"
        )
    return found


def short(value: Any) -> str:
    """The beginning of what a value says of itself."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}..."
