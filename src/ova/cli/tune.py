"""`ova tune`: the paper's random search."""

from pathlib import Path
from typing import Annotated

import typer

from ova.cli import options


def tune(
    experiment: Annotated[str, typer.Argument(help="A name from `ova list experiments`.")],
    only: options.Only = None,
    trials: Annotated[
        int, typer.Option(min=0, help="Trials per formulation; 0 takes the experiment's number.")
    ] = 0,
    storage: Annotated[
        str,
        typer.Option(
            help="Where workers meet: a database URL, or the path of a journal file. "
            "Default: a database beside the trials."
        ),
    ] = "",
    seed: Annotated[int, typer.Option(min=0, help="Decides what is tried.")] = 0,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="Give up trials that are worse than most (not the paper)."),
    ] = False,
    settings: options.Settings = None,
    out: Annotated[Path, typer.Option(help="Folder for the trials and the result.")] = Path("runs"),
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
    from ova.cli.searcher import Searcher
    from ova.errors import pick
    from ova.experiments import EXPERIMENTS
    from ova.training.engine import Machine
    from ova.training.search import Bench, searches

    chosen = options.names(only)
    found = searches(
        pick(EXPERIMENTS, experiment, "experiment"), chosen, trials, seed, settings or []
    )
    machine = Machine(devices, nodes, accelerator, device_batch, compile_)
    Searcher(Bench(out, data_dir, storage, prune), machine).carry_out(found)
