"""Ctrl-C while training: the first asks for the best epoch so far, the second stops."""

import io
import os
import signal
from collections.abc import Generator
from typing import Any

import pytest
import torch
from rich.console import Console

from ova.cli.interrupt import SAID, Interrupt, listening
from ova.training.loop import Progress, Tally
from ova.training.stages import Event, Stage


def step(epoch: int, row: dict[str, Any] | None = None) -> Progress:
    return Progress(epoch, 1, 10, 1, Tally(torch.device("cpu")), row)


def work(events: list[Event]) -> Generator[Event, None, str]:
    yield from events
    return "done"


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def run(interrupt: Interrupt, events: list[Event], pressed: dict[int, int]) -> str:
    """Go through the events; after the n-th Ctrl-C is pressed so many times."""
    watched = interrupt.watched(work(events))
    with listening(interrupt):
        for number in range(len(events) + 1):
            try:
                next(watched)
            except StopIteration as end:
                return str(end.value)
            for _ in range(pressed.get(number, 0)):
                press()
    return ""


LATER: list[Event] = [Stage("data"), step(1), step(1, {"epoch": 1}), step(2), Stage("predicting")]


@pytest.mark.parametrize("number", [0, 1, 4])
def test_where_there_is_no_epoch_to_end_with_it_stops_at_once(number: int) -> None:
    interrupt = Interrupt()
    with pytest.raises(KeyboardInterrupt):
        run(interrupt, LATER, {number: 1})
    assert not interrupt()


@pytest.mark.parametrize("number", [2, 3])
def test_the_first_asks_for_the_end_and_is_told(number: int) -> None:
    out = io.StringIO()
    interrupt = Interrupt(Console(file=out, width=200))
    assert run(interrupt, LATER, {number: 1}) == "done"
    assert interrupt()
    assert out.getvalue().count(SAID) == 1


def test_the_second_stops() -> None:
    interrupt = Interrupt()
    with pytest.raises(KeyboardInterrupt):
        run(interrupt, LATER, {2: 2})


def test_afterwards_ctrl_c_is_what_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    run(Interrupt(), LATER, {})
    assert signal.getsignal(signal.SIGINT) is before
