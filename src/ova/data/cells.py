"""Cells of tables: which columns are numbers and which are words, and what counts as missing."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_WORDS = 50  # different values that a column of words may have
LARGEST = 1e100  # the squares of larger numbers have no mean in float64
GAPS = {"", "nan", "na", "n/a", "null", "none", "?"}  # what people write where a number is missing


@dataclass(frozen=True)
class Column:
    """A column of numbers, or of the words listed in `words`; "" stands for a gap."""

    name: str
    words: tuple[str, ...] = ()

    @property
    def width(self) -> int:
        """Numbers that it becomes."""
        return len(self.words) or 1


def column_of(name: str, cells: Iterable[Any], counts: Iterable[int] = repeat(1)) -> Column | None:
    """A column of numbers if most of its cells are (the others are mistakes), else of words.

    None if no cell has a value. `counts` says how often each cell is there. How many words there may
    be is for the caller to say.

    >>> column_of("hue", ["red", "blue", None, "red"])
    Column(name='hue', words=('', 'blue', 'red'))
    >>> column_of("length", ["1.5", "?", 2]), column_of("nothing", ["", None])
    (Column(name='length', words=()), None)
    """
    found = list(zip(cells, counts, strict=False))
    words = {word_of(cell) for cell, _ in found}
    if words <= {""}:
        return None
    there = [(cell, count) for cell, count in found if not missing_number(cell)]
    no_number = sum(count for cell, count in there if math.isnan(as_number(cell)))
    if there and no_number <= sum(count for _, count in there) // 10:
        return Column(name)
    return Column(name, tuple(sorted(words)))


def of_numbers(cells: Sequence[Any]) -> tuple[NDArray[np.float64], dict[int, str]]:
    """A column of numbers, NaN where one is missing; other cells are named."""
    values, wrong = np.full((len(cells), 1), math.nan), {}
    for row, cell in enumerate(cells):
        number = as_number(cell)
        if abs(number) <= LARGEST:
            values[row] = number
        elif math.isfinite(number):
            wrong[row] = f"{cell!r}, too large (above {LARGEST:g})"
        elif not missing_number(cell):
            wrong[row] = f"{cell!r}, no finite number"
    return values, wrong


def of_words(cells: Sequence[Any], column: Column) -> tuple[NDArray[np.float64], dict[int, str]]:
    """A column of words, one-hot, a gap being one where training rows had gaps; none is wrong."""
    place = {word: k for k, word in enumerate(column.words)}
    values = np.zeros((len(cells), column.width))
    for row, cell in enumerate(cells):
        if (k := place.get(word_of(cell))) is not None:
            values[row, k] = 1
    return values, {}


def word_of(cell: Any) -> str:
    """The word in a cell, "" where there is none."""
    return "" if cell is None or cell != cell else str(cell).strip()  # noqa: PLR0124  NaN


def gap(cell: Any, column: Column) -> bool:
    """Whether the value is missing."""
    return not word_of(cell) if column.words else missing_number(cell)


def missing_number(cell: Any) -> bool:
    """Whether a cell of a column of numbers says that there is none.

    >>> [missing_number(cell) for cell in (None, " ", "NA", float("nan"), "?", "abc", "inf", 0)]
    [True, True, True, True, True, False, False, False]
    """
    return word_of(cell).lower() in GAPS


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
