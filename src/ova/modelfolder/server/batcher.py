"""A batcher: requests that come while the model works are answered together, in its next batch."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Condition, Thread
from time import perf_counter
from typing import Generic, TypeVar

from ova.modelfolder.server.refused import Refused

A = TypeVar("A")
R = TypeVar("R")
RECENT = 0.2  # weight of the last batch in the mean of seconds per row


@dataclass(frozen=True, eq=False)
class Job(Generic[A, R]):
    """Something asked, how many rows it has, and what it can be answered together with."""

    asked: A
    rows: int
    alike: Hashable
    done: "Future[R]" = field(default_factory=Future)


class Batcher(Generic[A, R]):
    """One thread that works as long as there is work, and never waits for more.

    Idle, a request is worked on at once. Busy, those that came meanwhile and are alike make the
    next batch, in their order, of at most `batch` rows (a single request may have more). At most
    `waiting` rows wait; who comes then is refused.
    """

    def __init__(
        self, work: Callable[[Sequence[A]], Sequence[R]], *, batch: int, waiting: int
    ) -> None:
        self._work, self._batch, self._waiting = work, batch, waiting
        self._jobs: deque[Job[A, R]] = deque()
        self._change = Condition()
        self._rows, self._pace, self._open = 0, 0.0, True
        self._thread = Thread(target=self._run, name="model", daemon=True)
        self._thread.start()

    @property
    def rows(self) -> int:
        """Rows that wait."""
        return self._rows

    @property
    def ready(self) -> bool:
        """Whether a request of one row would be taken."""
        return self._open and self._thread.is_alive() and self._rows < self._waiting

    def ask(self, asked: A, rows: int, alike: Hashable = None) -> "Future[R]":
        """A place in the queue; cancelled before its turn, it costs nothing."""
        job: Job[A, R] = Job(asked, rows, alike)
        with self._change:
            if not self._open:
                raise Refused(503, "the server stops; ask again in a moment", 5)
            if self._rows and self._rows + rows > self._waiting:
                after = max(1, math.ceil(self._rows * self._pace))
                told = f"{self._rows} rows are waiting already; ask again in {after} s"
                raise Refused(503, told, after)
            self._jobs.append(job)
            self._rows += rows
            self._change.notify()
        return job.done

    def close(self) -> None:
        """Take nothing more, finish what was taken, and end."""
        with self._change:
            self._open = False
            self._change.notify()
        self._thread.join()

    def _next(self) -> list[Job[A, R]]:
        """The first in the queue and those like it, as many as fit; nothing at the end."""
        with self._change:
            while not self._jobs and self._open:
                self._change.wait()
            taken: list[Job[A, R]] = []
            left: deque[Job[A, R]] = deque()
            rows = 0
            for job in self._jobs:
                room = rows + job.rows <= self._batch
                if not taken or (room and job.alike == taken[0].alike):
                    taken.append(job)
                    rows += job.rows
                else:
                    left.append(job)
            self._jobs, self._rows = left, self._rows - rows
        return taken

    def _run(self) -> None:
        while jobs := self._next():
            started = perf_counter()
            wanted = [job for job in jobs if job.done.set_running_or_notify_cancel()]
            self._answer(wanted)
            pace = (perf_counter() - started) / max(1, sum(job.rows for job in wanted))
            self._pace += RECENT * (pace - self._pace)

    def _answer(self, jobs: Sequence[Job[A, R]]) -> None:
        """Work on all at once; if that fails, on each alone, so that only whose fault it is fails."""
        if not jobs:
            return
        try:
            results = self._work([job.asked for job in jobs])
        except BaseException as error:  # panics of Rust are no Exceptions
            if len(jobs) == 1:
                jobs[0].done.set_exception(error)
            else:
                for job in jobs:
                    self._answer([job])
        else:
            for job, result in zip(jobs, results, strict=True):
                job.done.set_result(result)
