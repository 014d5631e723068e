"""`ova run`: train, predict and measure the recipes of experiments."""

from pathlib import Path
from typing import Annotated

import typer

from ova.cli import options


def run(
    experiments: Annotated[
        list[str] | None, typer.Argument(help="Names from `ova list experiments`.")
    ] = None,
    only: options.Only = None,
    seeds: Annotated[
        int, typer.Option(min=0, help="Seeds 0 to N - 1; 0 takes the experiment's number.")
    ] = 0,
    settings: options.Settings = None,
    recipe: Annotated[
        list[Path] | None, typer.Option(help="Run recipe files, for example of `ova tune`.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the runs.")] = Path("runs"),
    data_dir: options.DataDir = None,
    devices: options.Devices = 1,
    nodes: options.Nodes = 1,
    accelerator: options.Accelerator = "auto",
    device_batch: options.DeviceBatch = 0,
    compile_: options.Compile = False,
    tensorboard: Annotated[bool, typer.Option(help="Also log to TensorBoard.")] = False,
) -> None:
    """Train, predict and measure, stage by stage; what is complete is not run again.

    Every run leaves its files in OUT/<experiment>/<recipe id>/. An interrupted run goes on from
    its last epoch with the same command and ends with the same numbers. For example:

        ova run toy digits

        ova run cifar10-desk --only ova-dm --seeds 2 --set epochs=5
    """
    from ova.errors import BadInput, pick, require

    if tensorboard:
        require("tensorboard")
    from ova.cli.runner import Runner
    from ova.experiments import EXPERIMENTS
    from ova.training.engine import Machine
    from ova.training.recipe import load, override

    if not experiments and not recipe:
        raise BadInput(f"name an experiment or a --recipe file. There is: {', '.join(EXPERIMENTS)}")
    chosen = options.names(only)
    found = [pick(EXPERIMENTS, name, "experiment") for name in experiments or []]
    runs = [r for each in found for r in each.expand(chosen, seeds, settings or [])]
    runs += [override(load(path), settings or []) for path in recipe or []]
    machine = Machine(devices, nodes, accelerator, device_batch, compile_)
    failed = Runner(out, data_dir, machine, tensorboard).carry_out(runs)
    raise typer.Exit(1 if failed else 0)
