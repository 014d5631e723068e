"""What every logger is given, a run, and what it gives: a function that writes numbers by their epoch."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

Write = Callable[[Mapping[str, float], int], None]  # numbers by their names, and the epoch


@dataclass(frozen=True)
class Logged:
    """A run that is written down: its folder, what it is called, and what it belongs to."""

    folder: Path
    name: str
    experiment: str


def is_number(value: Any) -> bool:
    """Whether a value can be drawn."""
    return isinstance(value, int | float) and isfinite(value)
