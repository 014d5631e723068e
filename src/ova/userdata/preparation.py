"""Preprocessing of images, texts and tables: learned on the training rows, kept as plain values."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor

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
    def shape(self) -> tuple[int, ...]:
        """What the backbone is built for."""

    def encode(self, frame: Frame) -> Encoded:
        """Rows as a tensor."""
        ...

    def prepare(self, x: Tensor) -> Tensor:
        """A whole batch, on the device, as the network takes it."""
        ...

    def names(self, frame: Frame, first: int) -> Sequence[str]:
        """What to call each row in an answer; `first` is the number of the first one."""
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
