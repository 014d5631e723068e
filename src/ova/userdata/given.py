"""Data that is in memory, written as a file for the readers of files; a path stays a path."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ova.errors import BadInput
from ova.predictions.memory import frame, listed, short
from ova.userdata.labels import LABEL

LONGEST = 200  # letters of somebody else's error
TEXT = "text"  # the column of sentences that came without a name
KINDS = (
    "a data frame (pandas, polars), an Arrow table, a list of (input, label), inputs and labels apart, "
    "or the path of a file or folder"
)
Place = str | Path


@dataclass(frozen=True)
class Given:
    """Where the data lies, and how its columns are called."""

    path: Path
    text: str = ""
    label: str = ""


def written(
    data: Any, labels: Any, names: tuple[str, str], place: Path, columns: Sequence[str] = ()
) -> Given:
    """The data as a Parquet file at `place`, or where it is; `names` are those of text and label,
    `columns` those of rows of numbers.

    The bytes follow from the values alone, so that an interrupted training knows its data again.
    """
    text, label = names
    if isinstance(data, Place):
        if labels is not None:
            raise BadInput(f"the labels of {data} are one of its columns; label= names it")
        return Given(Path(data), text, label)
    with said_of("the data"):
        found = frame(data)
        if found is None:
            X, y = apart(data) if labels is None else (data, labels)
            found, text = inputs(X, text, columns)
            label = label or LABEL
            found = with_labels(found, listed(y), label)
        elif labels is not None:
            label = label or LABEL
            found = with_labels(found, listed(labels), label)
        store(found, place)
    return Given(place, text, label)


def unlabelled(data: Any, text: str, place: Path, columns: Sequence[str] = ()) -> Path:
    """Inputs without labels as a file, or where they are."""
    if isinstance(data, Place):
        return Path(data)
    with said_of("the data"):
        found = frame(data)
        store(inputs(data, text, columns)[0] if found is None else found, place)
    return place


def apart(data: Any) -> tuple[list[Any], list[Any]]:
    """Pairs as inputs and labels."""
    pairs = listed(data)
    odd = next((i for i, pair in enumerate(pairs) if not paired(pair)), None)
    if odd is not None:
        raise BadInput(
            f"row {odd + 1} is {short(pairs[odd])}, no pair (input, label); wanted {KINDS}"
        )
    return [pair[0] for pair in pairs], [pair[1] for pair in pairs]


def paired(pair: Any) -> bool:
    """Whether it has an input and a label."""
    return isinstance(pair, tuple | list) and len(pair) == 2


def inputs(X: Any, text: str, columns: Sequence[str] = ()) -> tuple[pa.Table, str]:
    """Sentences as a column, rows of numbers as one for each; and the name of the first."""
    rows = listed(X)
    if not rows:
        raise BadInput("there are no rows in it")
    if any(isinstance(row, Path) for row in rows):
        raise BadInput(
            "images are trained on from a folder that has a folder for each class: give its path"
        )
    if all(row is None or isinstance(row, str) for row in rows):
        return pa.table({text or TEXT: rows}), text or TEXT
    return pa.table(numbers(rows, columns)), ""


def numbers(rows: Sequence[Any], names: Sequence[str] = ()) -> dict[str, Any]:
    """Rows of numbers as columns with these names, or x0, x1, ..."""
    wrong = next((i for i, row in enumerate(rows) if isinstance(row, str)), None)
    if wrong is not None:
        raise BadInput(f"row {wrong + 1} is a text and others are not")
    try:
        x = np.asarray(rows, np.float64)
    except (TypeError, ValueError):
        raise BadInput(
            f"inputs are sentences or rows of as many numbers, not like {short(rows[0])}; wanted {KINDS}"
        ) from None
    if x.ndim != 2 or not x.shape[1]:
        raise BadInput(
            f"inputs are a matrix with a row each, not of shape {x.shape}; wanted {KINDS}"
        )
    called = names or [f"x{k}" for k in range(x.shape[1])]
    if len(called) != x.shape[1]:
        have = ", ".join(map(repr, called))
        raise BadInput(f"rows have {x.shape[1]} numbers, the model looks at {len(called)}: {have}")
    return dict(zip(called, x.T, strict=True))


def with_labels(table: pa.Table, labels: list[Any], name: str) -> pa.Table:
    """The table with one more column."""
    if len(labels) != len(table):
        raise BadInput(
            f"there are {len(table)} inputs and {len(labels)} labels; there must be one each"
        )
    if name in table.column_names:
        raise BadInput(f"labels are given apart, and there is a column {name!r} too; say which")
    return table.append_column(name, pa.array(labels))


def store(table: pa.Table, place: Path) -> None:
    """The values of the table as Parquet, without what the program that made it says of itself."""
    names = table.column_names
    if twice := next((b for a, b in pairwise(sorted(names)) if a == b), None):
        raise BadInput(f"two columns are called {twice!r}")
    plain = table.replace_schema_metadata(None).combine_chunks()
    pq.write_table(plain, place, store_schema=False)


@contextmanager
def said_of(what: str) -> Iterator[None]:
    """Whatever Arrow cannot take, as a sentence."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{what}: {error}") from None
    except (pa.ArrowException, ValueError, OverflowError, TypeError) as error:
        told = " ".join(str(error).split())[:LONGEST]
        raise BadInput(f"{what}: not columns with one kind of value each ({told})") from None


@contextmanager
def in_words_of_python(files: Mapping[Path, str]) -> Iterator[None]:
    """Messages of the engine, which speaks of options and files, as `in_python` says them."""
    try:
        yield
    except BadInput as error:
        raise BadInput(in_python(str(error), files)) from None


FLAGS = ("skip-bad", "mirror", "frozen")
OPTION = re.compile(r"--([a-z][a-z-]*)(?: (?=['\"0-9]))?")


def in_python(message: str, files: Mapping[Path, str]) -> str:
    """A message of the engine in the words of Python: keywords for options, no file of ours.

    >>> in_python("t.parquet: no 'a' (--label names it)", {Path("t.parquet"): "the data"})
    "the data: no 'a' (label= names it)"
    >>> in_python("leave them out with --skip-bad", {})
    'leave them out with skip_bad=True'
    """

    def keyword(found: re.Match[str]) -> str:
        return f"{found[1].replace('-', '_')}={'True' * (found[1] in FLAGS)}"

    for path, name in files.items():
        message = message.replace(str(path), name)
    return OPTION.sub(keyword, message)
