"""Data frames with columns of words as numbers, for classifiers in scikit-learn's manner: one-hot, as `ova train`."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.sparse import issparse

from ova.data.cells import MOST_WORDS, Column, column_of, of_numbers, of_words
from ova.errors import BadInput
from ova.predictions.memory import frame

Floats = NDArray[np.float64]


def worded(X: Any) -> pa.Table | None:
    """A data frame that has a column of something else than numbers; None for any other table."""
    if issparse(X):
        raise BadInput(
            "X is sparse, and standardised columns are not: TruncatedSVD(100) of scikit-learn before this in "
            "a pipeline makes few columns of it, X.toarray() as many as there are"
        )
    if not (hasattr(X, "columns") or isinstance(X, pa.Table)):
        return None
    try:
        table = frame(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        told = " ".join(str(error).split())[:200]
        raise BadInput(f"X: not columns with one kind of value each ({told})") from None
    if table is None or all(numeric(kind) for kind in table.schema.types):
        return None
    return table


def numeric(kind: pa.DataType) -> bool:
    """Whether all values of a column are numbers."""
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    )


def learned(table: pa.Table) -> tuple[Column, ...]:
    """What each column is: numbers if most of its cells are, else the words that it has."""
    return tuple(learned_column(name, table[name]) for name in table.column_names)


def learned_column(name: str, column: pa.ChunkedArray) -> Column:
    """One of them; a column without any value is one of numbers that are missing."""
    if numeric(column.type):
        return Column(name)
    cells, place = distinct(column)
    counts = np.bincount(place, minlength=len(cells))
    there = np.flatnonzero(counts).tolist()
    found = column_of(name, [cells[i] for i in there], counts[there].tolist()) or Column(name)
    if len(found.words) > MOST_WORDS:
        raise BadInput(
            f"column {name!r} is text with {len(found.words)} different values; a column of words may have "
            f"{MOST_WORDS}. Leave it out, or make numbers of it before"
        )
    return found


def encoded(table: pa.Table, columns: Sequence[Column]) -> Floats:
    """The cells of these columns, numbers as they are and NaN where one is missing, words one-hot."""
    missing = [column.name for column in columns if column.name not in table.column_names]
    if missing:
        have = ", ".join(map(repr, table.column_names))
        raise BadInput(f"there is no column {missing[0]!r}; the columns are {have}")
    return np.hstack([encoded_column(table[column.name], column) for column in columns])


def encoded_column(cells: pa.ChunkedArray, column: Column) -> Floats:
    """One of them: every different cell is looked at once."""
    if numeric(cells.type) and not column.words:
        values: Floats = cells.cast(pa.float64()).to_numpy()
        return values[:, None]
    known, place = distinct(cells)
    part, wrong = of_words(known, column) if column.words else of_numbers(known)
    odd = np.flatnonzero(np.isin(place, list(wrong)))
    if len(odd):
        row = int(odd[0])
        raise BadInput(f"row {row + 1}: column {column.name!r} is {wrong[int(place[row])]}")
    return np.asarray(part[place])


def distinct(column: pa.ChunkedArray) -> tuple[list[Any], NDArray[np.int64]]:
    """The different cells of a column, None the last, and which of them each row has."""
    if pa.types.is_dictionary(column.type):  # categories, each chunk with its own
        column = column.cast(column.type.value_type)
    coded = pa.chunked_array(column).combine_chunks().dictionary_encode()
    cells = coded.dictionary.to_pylist()
    return [*cells, None], coded.indices.fill_null(len(cells)).to_numpy(zero_copy_only=False)


def names_of(columns: Sequence[Column]) -> list[str]:
    """A name for each number that the columns become.

    >>> names_of([Column("length"), Column("hue", ("blue", "red"))])
    ['length', 'hue=blue', 'hue=red']
    """
    return [f"{c.name}={word}" if c.words else c.name for c in columns for word in c.words or ("",)]


def one_hot(columns: Sequence[Column]) -> NDArray[np.bool_]:
    """Which of these numbers are of words."""
    return np.array([bool(c.words) for c in columns for _ in range(c.width)], bool)
