"""Ctrl-C while training: the first asks for the best epoch so far, the second stops."""

import signal
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from rich.console import Console

if TYPE_CHECKING:
    from ova.training.stages import Event

T = TypeVar("T")
SAID = "ending with the best epoch so far; Ctrl-C again stops, and the same command then goes on"


class Interrupt:
    """Whether somebody wants the best epoch so far, and whether there is one."""

    def __init__(self, console: Console | None = None) -> None:
        self.console, self.asked, self.ready = console, False, False

    def __call__(self) -> bool:
        """Whether the training should end."""
        return self.asked

    def watched(self, events: "Generator[Event, None, T]") -> "Generator[Event, None, T]":
        """The same events; between them it is seen whether an epoch is done."""
        from ova.training.loop import Progress

        told = False
        while True:
            try:
                event = next(events)
            except StopIteration as end:
                value: T = end.value
                return value
            done = isinstance(event, Progress) and (event.epoch > 1 or event.row is not None)
            self.ready = done
            if self.asked and not told and self.console is not None:
                told = True
                self.console.print(SAID, soft_wrap=True)
            yield event

    def hear(self, *_: object) -> None:
        """A Ctrl-C: stop at once where there is no epoch to end with, or where one was asked for."""
        if self.asked or not self.ready:
            raise KeyboardInterrupt
        self.asked = True


@contextmanager
def listening(interrupt: Interrupt) -> Iterator[None]:
    """Hear Ctrl-C while the block runs; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, interrupt.hear)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
