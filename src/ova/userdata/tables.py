"""Tables: columns of numbers, standardised, and of few different words, one-hot; gaps are filled."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ova.data.cells import MOST_WORDS, Column, column_of, gap, of_numbers, of_words
from ova.errors import BadInput
from ova.userdata.kind import Encoded, Examined, Kind
from ova.userdata.request import Request
from ova.userdata.rows import Frame

SAID = 12  # columns of a row on a page


@dataclass(frozen=True)
class Columns:
    """x = (cells - mean) / scale, number by number, for the columns in this order.

    A missing number, NaN, is filled; where one was missing in training, a further input says so. A
    word that no training row had is zero in all places of its column.
    """

    columns: tuple[Column, ...]
    mean: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()
    fill: tuple[float, ...] | None = None  # medians; models of before took no gaps
    marked: tuple[int, ...] = ()  # numbers whose gaps are told apart
    column = ""  # rows have numbers for names

    @property
    def width(self) -> int:
        """Numbers of an encoded row."""
        return sum(column.width for column in self.columns)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of inputs of the network."""
        return (self.width + len(self.marked),)

    @property
    def takes(self) -> str:
        """Numbers as they are, words one-hot."""
        names = ", ".join(f"{c.name} ({len(c.words)})" if c.words else c.name for c in self.columns)
        return f"float64 N x {self.width}: {names}; words one-hot, a missing number NaN"

    def encode(self, frame: Frame) -> Encoded:
        """The cells as float64, so that a large number keeps its digits until it is standardised."""
        x, bad = np.zeros((len(frame), self.width)), dict(frame.bad)
        place, there = 0, np.zeros(len(frame), bool)
        for column in self.columns:
            cells = frame.column(column.name, "the table")
            part, wrong = of_words(cells, column) if column.words else of_numbers(cells)
            x[:, place : place + column.width] = part
            place += column.width
            missing = np.array([gap(cell, column) for cell in cells], bool)
            there |= ~missing
            if self.fill is None:
                wrong = dict.fromkeys(np.flatnonzero(missing).tolist(), "empty") | wrong
            for row, cell in wrong.items():
                bad.setdefault(row, f"column {column.name!r} is {cell}")
        for row in np.flatnonzero(~there).tolist():
            bad.setdefault(row, "every column is empty")
        x[list(bad)] = 0
        return Encoded(torch.from_numpy(x), None, bad)

    def prepare(self, x: Tensor) -> Tensor:
        """Filled and standardised, in float32."""
        mean, scale, fill = (
            torch.tensor(v, dtype=torch.float64, device=x.device)
            for v in (self.mean, self.scale, self.fill or self.mean)
        )
        standard = (torch.where(x.isnan(), fill, x) - mean) / scale
        if not self.marked:
            return standard.float()
        return torch.cat([standard, x[:, list(self.marked)].isnan()], 1).float()

    def example(self, count: int, draw: torch.Generator) -> Tensor:
        """Normal numbers with the means and scales of the columns, one in ten missing where some were."""
        noise = torch.randn(count, self.width, generator=draw, dtype=torch.float64)
        mean, scale = (torch.tensor(v, dtype=torch.float64) for v in (self.mean, self.scale))
        x, marked = mean + scale * noise, list(self.marked)
        gone = torch.rand(count, len(marked), generator=draw) < 0.1
        x[:, marked] = x[:, marked].masked_fill(gone, math.nan)
        return x

    def words(self, x: Tensor) -> str:
        """The cells with the names of their columns; of many columns those that are furthest from usual.

        >>> Columns((Column("length"), Column("hue", ("blue", "red")))).words(torch.tensor([3.25, 0, 1]))
        'length 3.25, hue red'
        """
        cells, said = iter(x.tolist()), []
        for column in self.columns:
            values = [next(cells) for _ in range(column.width)]
            known = (word for word, there in zip(column.words, values, strict=False) if there)
            cell = next(known, "?") or "?" if column.words else f"{values[0]:.6g}"
            said.append(f"{column.name} {'?' if cell == 'nan' else cell}")
        if len(said) <= SAID:
            return ", ".join(said)
        unusual = iter(self.prepare(x[None])[0].abs().tolist())
        far = [max(next(unusual) for _ in range(column.width)) for column in self.columns]
        shown = sorted(sorted(range(len(said)), key=lambda place: -far[place])[:SAID])
        return ", ".join(
            [*(said[place] for place in shown), f"and {len(said) - SAID} columns more"]
        )

    def picture(self, _: Tensor, /) -> bytes:
        """None."""
        return b""

    def to_json(self) -> dict[str, Any]:
        """Names and words of the columns; means, scales and fillings of what they become."""
        columns = [{"name": c.name, "words": list(c.words)} for c in self.columns]
        said = {"columns": columns, "mean": list(self.mean), "scale": list(self.scale)}
        gaps = {} if self.fill is None else {"fill": list(self.fill), "marked": list(self.marked)}
        return {**said, **gaps}


def from_json(content: Mapping[str, Any], _: Path) -> Columns:
    """What `to_json` gave."""
    columns = tuple(Column(c["name"], tuple(c["words"])) for c in content["columns"])
    fill, marked = content.get("fill"), tuple(content.get("marked", ()))
    filling = None if fill is None else tuple(fill)
    return Columns(columns, tuple(content["mean"]), tuple(content["scale"]), filling, marked)


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
    found = {name: told(name, frame) for name in names}
    empty = [name for name, column in found.items() if column is None]
    draft = Columns(tuple(column for column in found.values() if column is not None), fill=())
    if not draft.columns:
        raise BadInput("the table has no column with a value besides the label")
    encoded = draft.encode(frame)

    def learn(rows: Sequence[int]) -> Columns:
        return learned(draft.columns, encoded.x[list(rows)].numpy())

    keys = [row.tobytes() for row in encoded.x.numpy()]
    notes = ["the column without a name was left out (an index?)"] * ("" in frame.columns)
    notes += [f"column {name!r} is empty and was left out" for name in empty]
    notes += filled(draft, frame)
    return Examined(encoded.bad, keys, learn, lambda _: encoded, tuple(notes))


def learned(columns: tuple[Column, ...], x: NDArray[np.float64]) -> Columns:
    """Means, scales and medians of the numbers that are there in the rows to train on."""
    there = ~np.isnan(x)
    known = [
        values[here] if here.any() else np.zeros(1)
        for values, here in zip(x.T, there.T, strict=True)
    ]
    mean, scale, fill = (np.array([f(v) for v in known]) for f in (np.mean, np.std, np.median))
    # Words keep their 0 and 1: a rare one would become a huge number.
    kinds = [bool(c.words) for c in columns for _ in range(c.width)]
    mean = np.where(kinds, 0, mean)
    scale = np.where(np.logical_or(kinds, scale <= 1e-12 * np.abs(mean)), 1, scale)
    marked = np.flatnonzero(~there.all(0))
    said = (tuple(v.tolist()) for v in (mean, scale, fill, marked))
    return Columns(columns, *said)


def filled(draft: Columns, frame: Frame) -> list[str]:
    """What is done with missing values, and in which columns there are some."""
    counts = {
        column.name: sum(
            gap(cell, column)
            for row, cell in enumerate(frame.columns[column.name])
            if row not in frame.bad
        )
        for column in draft.columns
    }
    said = ", ".join(f"{name} {count}" for name, count in counts.items() if count)
    done = "a number as the median of the rows to train on, and marked; a word as one of its own"
    return [f"missing values were filled, {done}: {said}"] * bool(said)


def told(name: str, frame: Frame) -> Column | None:
    """What the cells of a column are, where its rows can be read; too many words are none."""
    column = column_of(
        name, (v for row, v in enumerate(frame.columns[name]) if row not in frame.bad)
    )
    if column and len(column.words) > MOST_WORDS:
        raise BadInput(
            f"column {name!r} is text with {len(column.words)} different values; a column of words may "
            f"have {MOST_WORDS}. If it is what to classify, say --text {name!r}, else --drop {name!r}"
        )
    return column


KIND = Kind(
    fits=lambda request: not request.data.is_dir() and not request.text,
    examine=examine,
    load=from_json,
    settings={"model": "mlp-256", "optimiser": "adamw", "lr": 1e-3, "weight_decay": 0.01,
              "schedule": "cosine", "dropout": 0.1},
    steps=6_000, epochs=(20, 200), batch=(16, 256),
)  # fmt: skip
