"""What a kind of data is: preprocessing learned on the training rows, and settings to train with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from ova.data.task import Augmentation, unchanged
from ova.userdata.request import Request
from ova.userdata.rows import Frame


@dataclass(frozen=True)
class Encoded:
    """Inputs as one tensor; a row that cannot be used is all zeros and has its reason in `bad`."""

    x: Tensor
    lengths: Tensor | None
    bad: Mapping[int, str]


class Preparation(Protocol):
    """How inputs become what the network takes: plain values, learned from the training part."""

    @property
    def column(self) -> str:
        """The column whose cell an answer is about; empty where rows are called by their number."""

    @property
    def shape(self) -> tuple[int, ...]:
        """What the backbone is built for."""

    @property
    def takes(self) -> str:
        """What `encode` makes of an input, in words exact enough to do the same elsewhere."""

    def encode(self, frame: Frame) -> Encoded:
        """Rows as a tensor."""
        ...

    def prepare(self, x: Tensor) -> Tensor:
        """A whole batch, on the device, as the network takes it."""
        ...

    def example(self, count: int, draw: torch.Generator) -> Tensor:
        """Encoded inputs at random, to try a network with."""
        ...

    def words(self, x: Tensor, /) -> str:
        """An encoded row to read, where no column of the input says what it is; else nothing."""
        ...

    def picture(self, x: Tensor, /) -> bytes:
        """An encoded row to look at, as PNG; nothing where it is no image."""
        ...

    def to_json(self) -> dict[str, Any]:
        """Plain values; what does not fit in JSON is a file beside it."""
        ...


@dataclass(frozen=True)
class Examined:
    """Data that was looked at: which rows cannot be used, which are the same, how to go on."""

    bad: Mapping[int, str]
    keys: Sequence[bytes]  # equal for equal inputs
    learn: Callable[[Sequence[int]], Preparation]  # from the rows to train on
    encode: Callable[[Preparation], Encoded]  # all rows
    notes: tuple[str, ...] = ()
    augment: Augmentation = unchanged


@dataclass(frozen=True)
class Kind:
    """A kind of data: which requests are about it, and how it is trained if the user says nothing."""

    fits: Callable[[Request], bool]
    examine: Callable[[Frame, Request], Examined]
    load: Callable[[Mapping[str, Any], Path], Preparation]  # what `to_json` gave, and its folder
    settings: Mapping[str, Any]  # of the recipe
    steps: int  # of training, about
    epochs: tuple[int, int]  # at least, at most
    batch: tuple[int, int]  # the same
    minutes: float = 0.0  # of training at most, if the user says nothing; 0: no limit


def whole(value: Any, low: int, high: int) -> bool:
    """Whether what a file says is a whole number within bounds.

    >>> whole(8, 1, 64), whole(True, 1, 64), whole({}, 1, 64)
    (True, False, False)
    """
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
