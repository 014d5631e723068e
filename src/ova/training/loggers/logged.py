"""Events of a training passed on, and each epoch's row and what was measured written down elsewhere."""

from collections.abc import Generator
from contextlib import ExitStack
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from ova.errors import pick
from ova.training.loggers import LOGGERS
from ova.training.loggers.board import Logged, is_number
from ova.training.loop import Progress
from ova.training.run_folder import read_log, read_measurements
from ova.training.stages import Event, Stage

T = TypeVar("T")


def logged(
    events: Generator[Event, None, T], what: Logged, logger: str
) -> Generator[Event, None, T]:
    """Pass events on and write down what they say; of several processes only the first may.

    Every number of an epoch's row is there under its name, by its epoch; at the end come the
    measurements of the test set. The log of a run that goes on goes on; a complete run adds nothing.
    """
    files = {name: f"ova.training.loggers.{name}" for name in LOGGERS}
    opened = import_module(pick(files, logger, "logger")).opened
    with ExitStack() as stack:
        # Nothing lies in the folder before the work has looked whether it is a place for it.
        board = cache(lambda: stack.enter_context(opened(what)))
        complete = False
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                if not complete:
                    board()(measured(what.folder), last_epoch(what.folder))
                value: T = end.value
                return value
            complete |= isinstance(event, Stage) and event.name == "complete"
            if isinstance(event, Progress) and event.row:
                numbers = {name: v for name, v in event.row.items() if is_number(v)}
                board()(numbers, int(event.row["epoch"]))
            yield event


def last_epoch(folder: Path) -> int:
    """The last epoch of the run's own log, which an earlier process may have written; 0 without epochs."""
    log = read_log(folder)
    return int(log[-1]["epoch"]) if log else 0


def measured(folder: Path) -> dict[str, float]:
    """The uncalibrated measurements of the test set, by the confidence."""
    rows = (r for r in read_measurements(folder) if r["dataset"] == "test")
    plain = (r for r in rows if not r.keys() & {"calibration", "score"} and is_number(r["value"]))
    return {f"test_{r['metric']}": float(r["value"]) for r in plain}
