"""In which order the labels of a log came, kept between calls: a bet is made once, when its outcome comes."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ova.errors import BadInput
from ova.files import read_object, reading, write_json
from ova.modelfolder.log import UNLABELLED, Log
from ova.posthoc.certificates import Counts

FORMAT, VERSION = "ova monitor", 1


@dataclass(frozen=True, eq=False)
class Arrivals:
    """The labelled rows of each call that brought some, and what must not have changed since."""

    calls: Sequence[Counts]
    about: tuple[str, float]  # the model, and the false-alarm rate
    log: Log

    @property
    def rows(self) -> Counts:
        """All labelled rows, in the order in which their labels came."""
        return np.concatenate([np.empty(0, np.int64), *self.calls])

    @staticmethod
    def of(path: Path | None, log: Log, about: tuple[str, float]) -> "Arrivals":
        """The labels that the state knows, as they came, then those that are new."""
        known: list[Counts] = []
        if path is not None and path.exists():
            known = read(path, log, about)
        labelled = np.flatnonzero(log.target != UNLABELLED)
        new = np.setdiff1d(labelled, np.concatenate([np.empty(0, np.int64), *known]))
        return Arrivals([*known, *([new] if len(new) else [])], about, log)

    def write(self, path: Path) -> None:
        """Keep what there is."""
        model, false_alarms = self.about
        n = len(self.log)
        content = {
            "format": FORMAT,
            "version": VERSION,
            "model": model,
            "false_alarms": false_alarms,
            "rows": n,
            "answers": answers(self.log, n),
            "labels": labels(self.log, self.rows),
            "calls": [rows.tolist() for rows in self.calls],
        }
        write_json(path, content, indent=None)


def read(path: Path, log: Log, about: tuple[str, float]) -> list[Counts]:
    """The labelled rows of each call, if the log has only grown since."""
    row = read_object(path)
    if row.get("format") != FORMAT or row.get("version") != VERSION:
        raise BadInput(f"{path} is no state of `ova monitor`; name another file")
    with reading(path, "a state of `ova monitor`"):
        calls = [np.array(rows, np.int64) for rows in row["calls"]]
        n, kept, said = int(row["rows"]), str(row["answers"]), str(row["labels"])
        model, false_alarms = str(row["model"]), float(row["false_alarms"])
        rows = np.concatenate([np.empty(0, np.int64), *calls])
        if len(rows) and not 0 <= rows.min() <= rows.max() < n:
            raise ValueError("rows that the log had not")
    if model != about[0]:
        raise BadInput(f"{path} is the state of another model; name another file for this one")
    if false_alarms != about[1]:
        raise BadInput(
            f"{path} was begun with --false-alarms {false_alarms:g}; a rate holds only if it is not "
            "changed on the way"
        )
    if n > len(log) or answers(log, n) != kept:
        raise BadInput(
            f"{path} was made with other rows than the first {n} of this log; give the whole log, to "
            "which rows were only added, or another state"
        )
    if labels(log, rows) != said:
        raise BadInput(
            f"{path}: labels that were known before are gone or different; a bet that was made stands. "
            "Name another state to begin anew"
        )
    return calls


def answers(log: Log, n: int) -> str:
    """A hash of the first n rows as they were answered."""
    guess = b"" if log.guess is None else log.guess[:n].astype(np.int64).tobytes()
    return hashlib.sha256(
        log.score[:n].tobytes() + log.answer[:n].astype(np.int64).tobytes() + guess
    ).hexdigest()


def labels(log: Log, rows: Counts) -> str:
    """A hash of the labels of these rows."""
    return hashlib.sha256(log.target[rows].astype(np.int64).tobytes()).hexdigest()
