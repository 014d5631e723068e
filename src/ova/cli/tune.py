"""`ova tune`: the paper's random search."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.console import Console
from rich.table import Table
from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.errors import pick
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from ova.training.engine import Machine
    from ova.training.search import Search


def tune(
    experiment: Annotated[str, Argument(help="A name from `ova list experiments`.")],
    only: options.Only = None,
    trials: Annotated[
        int, Option(min=0, help="Trials per formulation; 0 takes the experiment's number.")
    ] = 0,
    storage: Annotated[
        str,
        Option(
            help="Where workers meet: a database URL, or the path of a journal file. "
            "Default: a database beside the trials."
        ),
    ] = "",
    seed: Annotated[int, Option(min=0, help="Decides what is tried.")] = 0,
    prune: Annotated[
        bool, Option("--prune", help="Give up trials that are worse than most (not the paper).")
    ] = False,
    settings: options.Settings = None,
    out: Annotated[Path, Option(help="Folder for the trials and the result.")] = Path("runs"),
    data_dir: options.DataDir = None,
    devices: options.Devices = 1,
    nodes: options.Nodes = 1,
    accelerator: options.Accelerator = "auto",
    device_batch: options.DeviceBatch = 0,
    compile_: options.Compile = False,
) -> None:
    """Search the experiment's ranges at random and keep the best recipe by validation loss.

    Each formulation has its own search. An interrupted search goes on with the same command, and
    more workers join it by starting the same command elsewhere with the same --storage. Every
    trial is in OUT/<experiment>-tune/history.jsonl, the chosen recipes are
    OUT/<experiment>/<formulation>.json. For example:

        ova tune clinc-desk --trials 4

        ova run --recipe runs/clinc-desk/ova.json
    """
    outputs.check_folder("--out", out)
    from ova.experiments import EXPERIMENTS
    from ova.training.engine import Machine
    from ova.training.search import searches

    found = searches(
        pick(EXPERIMENTS, experiment, "experiment"),
        options.names(only),
        trials,
        settings or [],
        seed=seed,
        out=out,
        data_dir=data_dir,
        storage=storage,
        prune=prune,
    )
    machine = Machine(devices, nodes, accelerator, device_batch, compile_)
    search_all(found, machine)


def search_all(found: "Sequence[Search]", machine: "Machine") -> None:
    """Work on one search after the other and print what came out."""
    from ova.training.engine import launch
    from ova.training.progress import show
    from ova.training.search import tune as trials

    console, fabric = plain_console(), launch(machine, found[0].base.precision)
    for search in found:
        name = f"{search.experiment.name}/{search.formulation}"
        events = trials(fabric, search, machine)
        show(events, name, console if fabric.global_rank == 0 else None)
    if fabric.global_rank == 0:
        summarise(found, console)


def summarise(found: "Sequence[Search]", console: Console) -> None:
    """Print one line per search: how it stands, what was best, and the file to go on with."""
    from ova.training.search import choose, write_history

    rows = write_history(found)
    fields = list(found[0].experiment.search)
    table = Table("formulation", "trials", "validation loss", *fields, "recipe", box=None)
    for search in found:
        states = [r["state"] for r in rows if r["formulation"] == search.formulation]
        counts = ", ".join(f"{states.count(s)} {s}" for s in sorted(set(states)))
        if best := choose(search):
            numbers = [f"{best['value']:.5f}", *(f"{best[name]:.4g}" for name in fields)]
            table.add_row(search.formulation, counts, *numbers, str(search.winner))
        else:
            table.add_row(search.formulation, counts, *["-"] * (len(fields) + 2))
    console.print(table, soft_wrap=True)
    if any(r["state"] in ("running", "waiting") for r in rows):
        console.print("some trials are in other hands; the last worker to end writes the recipes")
