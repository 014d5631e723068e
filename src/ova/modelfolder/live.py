"""A log watched while a server writes it: at any moment what `ova monitor` would find in it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.modelfolder.folder import Model, digest
from ova.modelfolder.log import ANSWER, GUESS, SCORE, UNLABELLED, Log, rounded, served
from ova.modelfolder.watching import COVERAGE, NO_SCORES, Watched, monitor_of, outcomes
from ova.posthoc.monitoring.monitor import PROMISE, Finding
from ova.predictions import NONE


class Live:
    """The monitor of a stream of answers; one thread may add while others look.

    Of what is promised only the coverage is watched: the rest needs labels. The shares of the
    false-alarm rate are those of `ova monitor`, which gets them.
    """

    def __init__(self, model: Watched, false_alarms: float) -> None:
        self.model, self.false_alarms = model, false_alarms
        self._monitor = monitor_of(model, guesses=True, promises=True, false_alarms=false_alarms)
        self._numbers = {name: k for k, name in enumerate(model.classes)}
        self._lock = Lock()
        # What is compiled or loaded at its first use, is so before somebody waits for an answer.
        warm = monitor_of(model, guesses=True, promises=False, false_alarms=false_alarms)
        warm.update(model.answered.scores[:1], model.answered.classes[:1])

    @property
    def rows(self) -> int:
        """How many rows it has seen."""
        return self._monitor.n

    def resume(self, path: Path) -> None:
        """Take the rows of this model that an earlier server has written."""
        for piece in served(path, self.model.classes, self.model.digest):
            self._take(piece)

    def add(self, rows: Sequence[Mapping[str, Any]], *, own: bool) -> None:
        """Take rows as the log has them, which the model's own threshold decided or another one."""
        used = [row for row in rows if row[SCORE] is not None]
        answers = (row[ANSWER] for row in used)
        score = np.array([row[SCORE] for row in used], np.float64)
        self._take(
            Log(
                score=rounded(score),
                guess=np.array([self._numbers[row[GUESS]] for row in used], np.int64),
                answer=np.array([self._numbers.get(name, NONE) for name in answers], np.int64),
                target=np.full(len(used), UNLABELLED),
                when=(),
                own=np.full(len(used), own),
            )
        )

    def _take(self, log: Log) -> None:
        nobody = np.zeros(0, np.int64)
        with self._lock:
            first = self._monitor.n
            self._monitor.update(log.score, log.guess)
            if COVERAGE in self._monitor.promised:
                good, its = outcomes(COVERAGE, log, nobody, self.model)
                self._monitor.outcomes(COVERAGE, good, first + its)
            self._monitor.forget()

    def look(self) -> list[tuple[Finding, float]]:
        """What each bettor that needs no labels has found, and its log wealth now."""
        with self._lock:
            return [
                (each.finding, each.bettor.log)
                for each in self._monitor.watched
                if each.about != PROMISE or each.name == COVERAGE
            ]


def live(model: Model, log: Path | None, false_alarms: float) -> Live | str:
    """The monitor of a model that is served, or the reason why there is none."""
    if model.kept is None or model.kept.answered is None:
        return NO_SCORES
    facts = digest(model.facts)
    watched = Watched(model.classes, model.threshold, model.kept.answered, facts)
    found = Live(watched, false_alarms)
    if log is not None:
        try:
            found.resume(log)
        except BadInput as error:
            # An old line that nobody can read must not keep a server from answering.
            return f"the log has rows that `ova monitor` cannot read: {error}"
    return found
