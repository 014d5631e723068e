"""`ova tune`: the paper's random search."""

from pathlib import Path
from typing import Annotated

import typer


def tune(
    experiment: Annotated[str, typer.Argument(help="A name from `ova list experiments`.")],
    only: Annotated[
        list[str] | None,
        typer.Option(help="Only these formulations (repeat, or separate by commas)."),
    ] = None,
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
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", help="Override a field of every trial's recipe, for example epochs=5."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the trials and the result.")] = Path("runs"),
    data_dir: Annotated[
        Path | None, typer.Option(envvar="OVA_DATA", help="Folder that holds the data sets.")
    ] = None,
    devices: Annotated[int, typer.Option(min=1, help="Processes on this machine.")] = 1,
    nodes: Annotated[int, typer.Option(min=1, help="Machines (torchrun or SLURM).")] = 1,
    accelerator: Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")] = "auto",
    device_batch: Annotated[
        int, typer.Option(min=0, help="Examples one device holds at a time; 0: its whole share.")
    ] = 0,
    compile_: Annotated[bool, typer.Option("--compile", help="Compile the backbone.")] = False,
) -> None:
    """Search the experiment's ranges at random and keep the best recipe by validation loss.

    Each formulation has its own search. An interrupted search goes on with the same command, and
    more workers join it by starting the same command elsewhere with the same --storage. Every
    trial is in OUT/<experiment>-tune/history.jsonl, the chosen recipes are
    OUT/<experiment>/<formulation>.json. For example:

        ova tune clinc-desk --trials 4

        ova run --recipe runs/clinc-desk/ova.json
    """
    from ova.commands.searcher import Searcher
    from ova.engine import Machine
    from ova.recipes import EXPERIMENTS
    from ova.tables import pick
    from ova.tuning import Bench, searches

    chosen = [name for part in only or [] for name in part.split(",") if name]
    found = searches(
        pick(EXPERIMENTS, experiment, "experiment"), chosen, trials, seed, settings or []
    )
    machine = Machine(devices, nodes, accelerator, device_batch, compile_)
    Searcher(Bench(out, data_dir, storage, prune), machine).carry_out(found)
