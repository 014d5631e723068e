"""Many trials one after the other: watched, and summed up in a table."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from ova.cli.progress import Bar, Lines, bars, watch
from ova.training.engine import Machine, launch
from ova.training.search import Bench, Search, choose, tune, write_history
from ova.training.stages import Event


@dataclass(frozen=True)
class Searcher:
    """One `ova tune`: where it works and what it runs on."""

    bench: Bench
    machine: Machine

    def carry_out(self, found: Sequence[Search]) -> None:
        """Work on all searches and print what came out."""
        console = Console()
        fabric = launch(self.machine, found[0].base.precision)
        for search in found:
            events = tune(fabric, search, self.bench, self.machine)
            self.show(events, search, console if fabric.global_rank == 0 else None)
        if fabric.global_rank == 0:
            self.summary(found, console)

    def show(self, events: Iterable[Event], search: Search, console: Console | None) -> None:
        """Carry out the events in front of the right audience."""
        name = f"{search.experiment.name}/{search.formulation}"
        if console is None:
            for _ in events:
                pass
        elif console.is_terminal:
            with bars(console) as progress:
                watch(events, Bar(progress, progress.add_task(name, total=None, detail="")))
        else:
            watch(events, Lines(name, console))

    def summary(self, found: Sequence[Search], console: Console) -> None:
        """One line per search: how it stands, what was best, and the file to go on with."""
        rows = write_history(self.bench, found)
        fields = list(found[0].experiment.search)
        table = Table("formulation", "trials", "validation loss", *fields, "recipe", box=None)
        for search in found:
            states = [r["state"] for r in rows if r["formulation"] == search.formulation]
            counts = ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
            best = choose(self.bench, search)
            if best:
                numbers = [f"{best['value']:.5f}", *(f"{best[name]:.4g}" for name in fields)]
                table.add_row(search.formulation, counts, *numbers, str(self.bench.winner(search)))
            else:
                table.add_row(search.formulation, counts, *["-"] * (len(fields) + 2))
        console.print(table, soft_wrap=True)
        if any(r["state"] in ("running", "waiting") for r in rows):
            console.print(
                "some trials are in other hands; the last worker to end writes the recipes"
            )
