"""Tables: columns of numbers, standardised, and columns of few different words, one-hot."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ova.errors import BadInput
from ova.userdata.kind import Encoded, Examined, Kind
from ova.userdata.request import Request
from ova.userdata.rows import Frame

MOST_WORDS = 50  # different values that a column of words may have
LARGEST = 1e100  # the squares of larger numbers have no mean in float64


@dataclass(frozen=True)
class Column:
    """A column of numbers, or of the words listed in `words`."""

    name: str
    words: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Numbers that it becomes."""
        return len(self.words) or 1


@dataclass(frozen=True)
class Columns:
    """x = (cells - mean) / scale, number by number, for the columns in this order.

    A word that no training row had is zero in all places of its column.
    """

    columns: tuple[Column, ...]
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    column = ""  # rows have numbers for names

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of inputs of the network."""
        return (sum(column.width for column in self.columns),)

    def encode(self, frame: Frame) -> Encoded:
        """The cells as float64, so that a large number keeps its digits until it is standardised."""
        x, bad = np.zeros((len(frame), *self.shape)), dict(frame.bad)
        place = 0
        for column in self.columns:
            cells = frame.column(column.name, "the table")
            part, wrong = of_words(cells, column) if column.words else of_numbers(cells)
            x[:, place : place + column.width] = part
            place += column.width
            for row, cell in wrong.items():
                bad.setdefault(row, f"column {column.name!r} is {cell}")
        x[list(bad)] = 0
        return Encoded(torch.from_numpy(x), None, bad)

    def prepare(self, x: Tensor) -> Tensor:
        """Standardised, in float32."""
        mean, scale = (
            torch.tensor(v, dtype=torch.float64, device=x.device) for v in (self.mean, self.scale)
        )
        return ((x - mean) / scale).float()

    def example(self, count: int, draw: torch.Generator) -> Tensor:
        """Normal numbers with the means and scales of the columns."""
        noise = torch.randn(count, *self.shape, generator=draw, dtype=torch.float64)
        mean, scale = (torch.tensor(v, dtype=torch.float64) for v in (self.mean, self.scale))
        return mean + scale * noise

    def to_json(self) -> dict[str, Any]:
        """Names and words of the columns, means and scales of what they become."""
        columns = [{"name": c.name, "words": list(c.words)} for c in self.columns]
        return {"columns": columns, "mean": list(self.mean), "scale": list(self.scale)}


def from_json(content: Mapping[str, Any], _: Path) -> Columns:
    """What `to_json` gave."""
    columns = tuple(Column(c["name"], tuple(c["words"])) for c in content["columns"])
    return Columns(columns, tuple(content["mean"]), tuple(content["scale"]))


def of_numbers(cells: Sequence[Any]) -> tuple[NDArray[np.float64], dict[int, str]]:
    """A column of numbers; cells that are none are 0 and named."""
    values, wrong = np.zeros((len(cells), 1)), {}
    for row, cell in enumerate(cells):
        number = as_number(cell)
        if abs(number) <= LARGEST:
            values[row] = number
        elif math.isfinite(number):
            wrong[row] = f"{cell!r}, too large (above {LARGEST:g})"
        else:
            wrong[row] = "empty" if blank(cell) else f"{cell!r}, no finite number"
    return values, wrong


def of_words(cells: Sequence[Any], column: Column) -> tuple[NDArray[np.float64], dict[int, str]]:
    """A column of words, one-hot; empty cells are named."""
    place = {word: k for k, word in enumerate(column.words)}
    values, wrong = np.zeros((len(cells), column.width)), {}
    for row, cell in enumerate(cells):
        if blank(cell):
            wrong[row] = "empty"
        elif (k := place.get(str(cell).strip())) is not None:
            values[row, k] = 1
    return values, wrong


def as_number(cell: Any) -> float:
    """The number in a cell, NaN for everything else.

    >>> as_number(" 1e3 "), as_number(True), as_number("abc"), as_number("1_000")
    (1000.0, 1.0, nan, nan)
    """
    if isinstance(cell, str) and "_" in cell:
        return math.nan  # Python would read 1_000 as a number
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan


def blank(cell: Any) -> bool:
    """Whether there is nothing in the cell."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def examine(frame: Frame, request: Request) -> Examined:
    """Decide what each column is; cells without a value are named."""
    if request.encoder:
        raise BadInput("--encoder is for texts (with --text) and images; a table has none")
    missing = [name for name in request.drop if name not in frame.columns]
    if missing:
        raise BadInput(f"there is no column {missing[0]!r} to drop")
    left_out = {"", request.group, *request.drop}
    names = [name for name in frame.columns if name not in left_out]
    if not names:
        raise BadInput("the table has no column besides the label")
    draft = Columns(tuple(column_of(name, frame) for name in names))
    encoded = draft.encode(frame)
    notes = ("the column without a name was left out (an index?)",) if "" in frame.columns else ()

    def learn(rows: Sequence[int]) -> Columns:
        x = encoded.x[list(rows)].numpy()
        scale = x.std(0)
        # Words keep their 0 and 1: a rare one would become a huge number.
        kinds = [bool(c.words) for c in draft.columns for _ in range(c.width)]
        mean = np.where(kinds, 0, x.mean(0))
        scale = np.where(np.logical_or(kinds, scale <= 1e-12 * np.abs(mean)), 1, scale)
        return Columns(draft.columns, tuple(mean.tolist()), tuple(scale.tolist()))

    keys = [row.tobytes() for row in encoded.x.numpy()]
    return Examined(encoded.bad, keys, learn, lambda _: encoded, notes)


def column_of(name: str, frame: Frame) -> Column:
    """A column of numbers if most of its filled cells are (the others are mistakes), else of words."""
    cells = frame.columns[name]
    filled = [c for row, c in enumerate(cells) if row not in frame.bad and not blank(c)]
    no_number = sum(math.isnan(as_number(c)) and str(c).strip().lower() != "nan" for c in filled)
    if no_number <= len(filled) // 10:
        return Column(name)
    words = {str(c).strip() for c in filled}
    if len(words) > MOST_WORDS:
        raise BadInput(
            f"column {name!r} is text with {len(words)} different values; a column of words may "
            f"have {MOST_WORDS}. If it is what to classify, say --text {name!r}, else --drop {name!r}"
        )
    return Column(name, tuple(sorted(words)))


KIND = Kind(
    fits=lambda request: not request.data.is_dir() and not request.text,
    examine=examine,
    load=from_json,
    settings={"model": "mlp-256", "optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.01,
              "schedule": "cosine", "dropout": 0.1},
    steps=6_000, epochs=(20, 200), batch=(16, 256),
)  # fmt: skip
