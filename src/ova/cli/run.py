"""`ova run`: train, predict and measure the recipes of experiments."""

import traceback
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.errors import BadInput, mendable, pick
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from lightning_fabric import Fabric

    from ova.training.engine import Machine
    from ova.training.recipe import Recipe
    from ova.training.stages import Place


def run(
    experiments: Annotated[
        list[str] | None, Argument(help="Names from `ova list experiments`.")
    ] = None,
    only: options.Only = None,
    seeds: Annotated[
        int, Option(min=0, help="Seeds 0 to N - 1; 0 takes the experiment's number.")
    ] = 0,
    settings: options.Settings = None,
    recipe: Annotated[
        list[Path] | None,
        Option(help="Run recipes: a file of `ova tune`, or a .jsonl with one per line."),
    ] = None,
    out: Annotated[Path, Option(help="Folder for the runs.")] = Path("runs"),
    data_dir: options.DataDir = None,
    devices: options.Devices = 1,
    nodes: options.Nodes = 1,
    accelerator: options.Accelerator = "auto",
    device_batch: options.DeviceBatch = 0,
    compile_: options.Compile = False,
    log: options.Log = "",
    tensorboard: Annotated[bool, Option(help="The same as --log tensorboard.")] = False,
    keep_features: Annotated[
        bool, Option("--keep-features", help="Keep the features in the predictions' files.")
    ] = False,
) -> None:
    """Train, predict and measure, stage by stage; what is complete is not run again.

    Every run leaves its files in OUT/<experiment>/<recipe id>/. An interrupted run goes on from
    its last epoch with the same command and ends with the same numbers. For example:

        ova run toy digits

        ova run cifar10-desk --only ova-dm --seeds 2 --set epochs=5
    """
    logger = options.logger(log, tensorboard)
    from ova.experiments import EXPERIMENTS
    from ova.training.engine import Machine
    from ova.training.recipe import load_all, override
    from ova.training.stages import Place

    if not experiments and not recipe:
        raise BadInput(f"name an experiment or a --recipe file. There is: {', '.join(EXPERIMENTS)}")
    chosen = options.names(only)
    found = [pick(EXPERIMENTS, name, "experiment") for name in experiments or []]
    runs = [r for each in found for r in each.expand(chosen, seeds, settings or [])]
    runs += [override(r, settings or []) for path in recipe or [] for r in load_all(path)]
    outputs.check_folder("--out", out)
    machine = Machine(devices, nodes, accelerator, device_batch, compile_, keep_features)
    failed = run_all(runs, Place(out, data_dir), machine, logger)
    raise typer.Exit(1 if failed else 0)


def run_all(recipes: "list[Recipe]", place: "Place", machine: "Machine", logger: str = "") -> int:
    """Run all recipes and print the summary; gives the number that failed."""
    from ova.training.engine import launch

    console = plain_console()
    precisions = sorted({recipe.precision for recipe in recipes})
    if len(precisions) > 1 and machine.devices * machine.nodes > 1:
        raise BadInput(
            f"several processes run one precision at a time, not {', '.join(precisions)}"
        )
    fabrics = {precision: launch(machine, precision) for precision in precisions}
    failures = sum(
        run_one(fabrics[r.precision], r, place, machine, logger, console) for r in recipes
    )
    if all(fabric.global_rank == 0 for fabric in fabrics.values()):
        summarise(map(place.folder, recipes), console)
        if failures:
            console.print(f"{failures} of {len(recipes)} runs failed", style="red")
        else:
            console.print(f"next: ova report {place.out} -o report.html")
    return failures


def run_one(
    fabric: "Fabric",
    recipe: "Recipe",
    place: "Place",
    machine: "Machine",
    logger: str,
    console: Console,
) -> bool:
    """Run one recipe; whether it failed. With several processes a failure stops all of them."""
    from ova.training.loop import Diverged
    from ova.training.progress import show
    from ova.training.run_folder import FAILURE, strangers
    from ova.training.stages import carry_out

    def complain(text: str) -> None:
        console.print(f"{name}: {text}", style="red")

    folder, name = place.folder(recipe), f"{recipe.experiment}/{recipe.id}"
    events = carry_out(fabric, recipe, place, machine)
    try:
        if logger and fabric.global_rank == 0:
            from ova.training.loggers.board import Logged
            from ova.training.loggers.logged import logged

            events = logged(events, Logged(folder, recipe.id, recipe.experiment), logger)
        show(events, name, console if fabric.global_rank == 0 else None)
    except BadInput as error:
        complain(str(error))
        # Only what all processes see alike lets them go on together to the next recipe.
        if fabric.world_size > 1 and not isinstance(error, Diverged):
            raise
        return True
    except Exception as error:
        if fabric.world_size > 1:
            raise
        if isinstance(told := mendable(error), BadInput):
            complain(str(told))
            return True
        with suppress(OSError):  # a full disk must not hide the first error
            (folder / FAILURE).write_text(traceback.format_exc(), encoding="utf-8")
        complain(f"{type(error).__name__}: {error}; see {folder / FAILURE}")
        return True
    if fabric.global_rank == 0 and (foreign := strangers(folder)):
        names = ", ".join(str(path) for path in foreign)
        console.print(f"note: not written by ova, left untouched: {names}", style="yellow")
    return False


def summarise(folders: Iterable[Path], console: Console) -> None:
    """Print one line per run that has measurements."""
    from ova.metrics.choice import PLAIN
    from ova.predictions import SetName
    from ova.training.run_folder import RECIPE, part, read_measurements

    table = Table("experiment", "formulation", "seed", "accuracy", "ECE", "OOD AUROC", box=None)
    for folder in folders:
        rows = [r for r in read_measurements(folder) if "calibration" not in r]
        if not rows:
            continue
        recipe = part(folder / RECIPE)
        test = {r["metric"]: r["value"] for r in rows if r["dataset"] == "test"}
        aurocs = (r for r in rows if r["metric"] == "auroc" and r.get("score") == PLAIN)
        aurocs = (r for r in aurocs if r["value"] is not None)
        table.add_row(
            *(str(recipe.get(name, "")) for name in ("experiment", "formulation", "seed")),
            *("" if test.get(m) is None else f"{test[m]:.4f}" for m in ("accuracy", "ece")),
            "  ".join(f"{SetName(r['dataset']).short} {r['value']:.3f}" for r in aurocs),
        )
    console.print(table)
