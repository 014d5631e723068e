"""Where else training is written down: each epoch's row, and what was measured, for TensorBoard or MLflow."""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, TypeVar

from ova.errors import pick, require
from ova.training.loop import Progress
from ova.training.run_folder import TENSORBOARD, read_measurements, read_recipe
from ova.training.stages import Event

T = TypeVar("T")
Write = Callable[[Mapping[str, float], int], None]  # numbers by their names, and the epoch


@dataclass(frozen=True)
class Logged:
    """A run that is written down: its folder, what it is called, and of which experiment it is."""

    folder: Path
    name: str
    experiment: str


def logged(events: Generator[Event, None, T], what: Logged, logger: str) -> Generator[Event, None, T]:
    """Pass events on and write down what they say; of several processes only the first may.

    Every number of an epoch's row has its name there, by its epoch; at the end come the
    measurements of the test set. The log of a run that goes on goes on.
    """
    with pick(LOGGERS, logger, "logger")(what) as write:
        last = 0
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                write(measured(what.folder), last)
                value: T = end.value
                return value
            if isinstance(event, Progress) and event.row:
                last = int(event.row["epoch"])
                write({name: float(value) for name, value in event.row.items() if number(value)}, last)
            yield event


def measured(folder: Path) -> dict[str, float]:
    """The uncalibrated measurements of the test set, by the confidence."""
    rows = (r for r in read_measurements(folder) if r["dataset"] == "test")
    plain = (r for r in rows if not r.keys() & {"calibration", "score"} and number(r["value"]))
    return {f"test_{r['metric']}": float(r["value"]) for r in plain}


def number(value: Any) -> bool:
    """Whether a value can be drawn."""
    return isinstance(value, int | float) and isfinite(value)
