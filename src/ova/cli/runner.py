"""Many recipes one after the other: watched, summed up, and none taken down by another's failure."""

import traceback
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lightning_fabric import Fabric
from rich.console import Console
from rich.table import Table

from ova.cli.progress import Bar, Lines, bars, watch
from ova.errors import BadInput
from ova.predictions import SetName
from ova.training.engine import Machine, launch
from ova.training.loop import Diverged, Progress
from ova.training.recipe import Recipe
from ova.training.run_folder import FAILURE, TENSORBOARD, read_measurements, strangers
from ova.training.stages import Event, Place, carry_out


@dataclass(frozen=True)
class Runner:
    """One `ova run`: where it writes, where it reads, what it runs on."""

    out: Path
    data_dir: Path | None
    machine: Machine
    tensorboard: bool = False

    def carry_out(self, recipes: list[Recipe]) -> int:
        """Run all recipes and print the summary; gives the number that failed."""
        console = Console()
        precisions = {recipe.precision for recipe in recipes}
        if len(precisions) > 1:
            raise BadInput(f"one `ova run` has one precision, not {', '.join(sorted(precisions))}")
        fabric = launch(self.machine, *precisions)
        failures = sum([self.one(fabric, recipe, console) for recipe in recipes])
        if fabric.global_rank == 0:
            self.summary(recipes, console)
            if failures:
                console.print(f"{failures} of {len(recipes)} runs failed", style="red")
            else:
                console.print(f"next: ova report {self.out} -o report.html", highlight=False)
        return failures

    def one(self, fabric: Fabric, recipe: Recipe, console: Console) -> bool:
        """Run one recipe; whether it failed. With several processes a failure stops all of them."""
        place = Place(self.out, self.data_dir)
        folder = place.folder(recipe)
        events = carry_out(fabric, recipe, place, self.machine)
        try:
            self.show(fabric, recipe, self.logged(events, folder), console)
        except BadInput as error:
            self.complain(recipe, str(error), console)
            # Only what all processes see alike lets them go on together to the next recipe.
            if fabric.world_size > 1 and not isinstance(error, Diverged):
                raise
        except Exception as error:
            if fabric.world_size > 1:
                raise
            with suppress(OSError):  # a full disk must not hide the first error
                (folder / FAILURE).write_text(traceback.format_exc(), encoding="utf-8")
            self.complain(
                recipe, f"{type(error).__name__}: {error}; see {folder / FAILURE}", console
            )
        else:
            if fabric.global_rank == 0 and (foreign := strangers(folder)):
                names = ", ".join(str(path) for path in foreign)
                console.print(f"note: not written by ova, left untouched: {names}", style="yellow")
            return False
        return True

    def complain(self, recipe: Recipe, text: str, console: Console) -> None:
        """Say which recipe failed and why."""
        console.print(f"{recipe.experiment}/{recipe.id}: {text}", style="red", markup=False)

    def show(
        self, fabric: Fabric, recipe: Recipe, events: Iterable[Event], console: Console
    ) -> None:
        """Carry out the events in front of the right audience."""
        if fabric.global_rank != 0:
            for _ in events:
                pass
        elif console.is_terminal:
            with bars(console) as progress:
                watch(events, Bar(progress, progress.add_task(recipe.id, total=None, detail="")))
        else:
            watch(events, Lines(f"{recipe.experiment}/{recipe.id}", console))

    def logged(self, events: Iterator[Event], folder: Path) -> Iterator[Event]:
        """Pass events on; with --tensorboard also write each epoch's row for it."""
        if not self.tensorboard:
            yield from events
            return
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(str(folder / TENSORBOARD)) as board:
            for event in events:
                if isinstance(event, Progress) and event.row:
                    for name, value in event.row.items():
                        board.add_scalar(name, value, event.row["epoch"])
                yield event

    def summary(self, recipes: list[Recipe], console: Console) -> None:
        """One line per run that has measurements."""
        table = Table("experiment", "formulation", "seed", "accuracy", "ECE", "OOD AUROC", box=None)
        for recipe in recipes:
            measured = read_measurements(Place(self.out).folder(recipe))
            if rows := [row for row in measured if "calibration" not in row]:
                test = {r["metric"]: r["value"] for r in rows if r["dataset"] == "test"}
                table.add_row(
                    recipe.experiment,
                    recipe.formulation,
                    str(recipe.seed),
                    f"{test['accuracy']:.4f}",
                    f"{test['ece']:.4f}",
                    "  ".join(outside(rows)),
                )
        console.print(table)


def outside(rows: list[dict[str, object]]) -> Iterator[str]:
    """The AUROC of max p against every out-of-distribution set."""
    for row in rows:
        if row["metric"] == "auroc" and row.get("score") == "max_p":
            yield f"{SetName(row['dataset']).short} {row['value']:.3f}"
