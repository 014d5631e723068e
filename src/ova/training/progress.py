"""How work is shown while it goes on: a live bar on a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Generator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from ova.training.loop import Progress as Step
from ova.training.stages import Event, Stage

T = TypeVar("T")
QUIET = 10.0  # seconds between plain lines
EPOCH = 1.0  # of the end of an epoch, which has the validation numbers


def show(events: Generator[Event, None, T], name: str, console: Console | None) -> T:
    """Carry out the work behind the events, show them and give what it returns.

    Without a console nothing is shown: of several processes only the first speaks.
    """
    if console is None:
        return carry_out(events, lambda _: None)
    if not console.is_terminal:
        return carry_out(events, Lines(name, console).see)
    with bars(console) as progress:
        bar = Bar(progress, progress.add_task(name, total=None, detail=""))
        return carry_out(events, bar.see)


def carry_out(events: Generator[Event, None, T], see: Callable[[Event], None]) -> T:
    """Pass every event on, and give what the generator returns."""
    while True:
        try:
            event = next(events)
        except StopIteration as end:
            value: T = end.value
            return value
        see(event)


def stage(event: Stage) -> str:
    """The stage under way, and how far it is."""
    return f"{event.name} {event.number}/{event.count}" if event.count else event.name


def epoch(step: Step, examples_per_second: float) -> str:
    """The epoch under way: its number, loss, accuracy and speed."""
    seen = max(float(step.tally.seen), 1.0)
    loss, accuracy = float(step.tally.loss) / seen, float(step.tally.hits) / seen
    speed = f"{examples_per_second:,.0f}/s"
    return f"epoch {step.epoch}  loss {loss:.4f}  accuracy {accuracy:.4f}  {speed}"


def held_out(step: Step, before: str) -> str:
    """What the last finished epoch reached on validation rows."""
    if not step.row or "validation_accuracy" not in step.row:
        return before
    row = step.row
    return (
        f"  validation loss {row['validation_loss']:.4f} accuracy {row['validation_accuracy']:.4f}"
    )


class Speed:
    """Examples per second since the first step that was seen."""

    def __init__(self) -> None:
        self.began, self.epoch, self.examples, self.total = 0.0, 0, 0, 0

    def of(self, step: Step) -> float:
        """The mean speed so far, validation included: what the time left depends on."""
        now = time.perf_counter()
        if not self.began:
            self.began = now
        else:
            self.total += step.examples - (self.examples if step.epoch == self.epoch else 0)
        self.epoch, self.examples = step.epoch, step.examples
        return self.total / max(now - self.began, 1e-9)


class Bar:
    """A live bar for a terminal."""

    def __init__(self, progress: Progress, task: TaskID) -> None:
        self.progress, self.task, self.speed, self.drawn = progress, task, Speed(), 0.0
        self.held = ""

    def see(self, event: Event) -> None:
        """Redraw, at most ten times a second: reading a loss makes the device wait."""
        if isinstance(event, Stage):
            share = {"completed": event.number, "total": event.count} if event.count else {}
            self.progress.update(self.task, detail=stage(event), refresh=True, **share)  # type: ignore[arg-type]
            return
        speed, self.held = self.speed.of(event), held_out(event, self.held)
        if time.perf_counter() - self.drawn > 0.1 or event.row:
            self.drawn = time.perf_counter()
            detail = epoch(event, speed) + self.held
            self.progress.update(self.task, completed=event.step, total=event.steps, detail=detail)


class Lines:
    """Plain lines for a log: the start, one every ten seconds, and the end of each stage."""

    def __init__(self, name: str, console: Console) -> None:
        self.name, self.console, self.speed, self.said = name, console, Speed(), 0.0
        self.held = ""

    def see(self, event: Event) -> None:
        """Say what happens, seldom enough to read."""
        now = time.perf_counter()
        if isinstance(event, Stage):
            if now - self.said > QUIET or not event.count or event.number == event.count:
                self.say(stage(event))
            return
        speed, self.held = self.speed.of(event), held_out(event, self.held)
        ended = event.row and (event.step == event.steps or now - self.said > EPOCH)
        if now - self.said > QUIET or ended:
            self.say(f"step {event.step}/{event.steps}  {epoch(event, speed)}{self.held}")

    def say(self, text: str) -> None:
        """Print one line."""
        self.said = time.perf_counter()
        self.console.print(f"{self.name}: {text}", highlight=False, markup=False, soft_wrap=True)


def bars(console: Console) -> Progress:
    """The columns of the live bar: name, bar, what happens, time left."""
    return Progress(
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[detail]}", markup=False),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
    )
