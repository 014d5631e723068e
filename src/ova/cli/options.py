"""Options that several commands share, so that they mean and say the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

Only = Annotated[
    list[str] | None, typer.Option(help="Only these formulations (repeat, or separate by commas).")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a field of the recipe, for example epochs=5."),
]
DataDir = Annotated[
    Path | None, typer.Option(envvar="OVA_DATA", help="Folder that holds the data sets.")
]
Devices = Annotated[int, typer.Option(min=1, help="Processes on this machine.")]
Nodes = Annotated[int, typer.Option(min=1, help="Machines (torchrun or SLURM).")]
Accelerator = Annotated[str, typer.Option(help="auto, cpu, cuda or mps.")]
DeviceBatch = Annotated[
    int, typer.Option(min=0, help="Examples one device holds at a time; 0: its whole share.")
]
Compile = Annotated[bool, typer.Option("--compile", help="Compile the backbone.")]


def names(parts: list[str] | None) -> list[str]:
    """The names in a repeated option whose values may also be separated by commas.

    >>> names(["softmax,ova", "dm"])
    ['softmax', 'ova', 'dm']
    """
    return [name for part in parts or [] for name in part.split(",") if name]
