"""Devices and processes (Lightning Fabric), and the settings that make a run repeatable."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from lightning_fabric import Fabric
from lightning_fabric.utilities.exceptions import MisconfigurationException
from torch import Tensor

from ova.errors import BadInput
from ova.files import cores


def nobody() -> bool:
    """Nobody asks for an early end."""
    return False


@dataclass(frozen=True)
class Machine:
    """How a run is carried out, and what it leaves on disk; none of it belongs to the recipe."""

    devices: int = 1
    nodes: int = 1
    accelerator: str = "auto"
    device_batch: int = 0  # examples that one device holds at a time; 0: its whole share
    compile: bool = False
    keep_features: bool = False  # beside the predictions, of all sets but the shifted ones
    minutes: float | None = (
        None  # of training, then the best epoch is kept; 0: no limit; None: as usual
    )
    asked: Callable[[], bool] = nobody  # whether somebody wants the best epoch so far


def launch(machine: Machine, precision: str = "32-true") -> Fabric:
    """Start Fabric on the machine; with several processes each of them returns from here."""
    torch.set_flush_denormal(True)  # before the first worker thread, which inherits it
    many = machine.devices * machine.nodes > 1
    try:
        fabric = Fabric(
            accelerator=machine.accelerator,
            devices=machine.devices,
            num_nodes=machine.nodes,
            strategy="ddp" if many else "auto",
            precision=precision,  # type: ignore[arg-type]
        )
    except (RuntimeError, ValueError, ImportError, MisconfigurationException) as error:
        what = f"--accelerator {machine.accelerator} with --devices {machine.devices}"
        raise BadInput(f"{what} cannot be had here: {error}") from None
    if fabric.device.type == "cpu" and machine.devices > 1 and "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, cores() // machine.devices))
    if fabric.device.type == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
    fabric.launch()
    return fabric


def share(fabric: Fabric, batches: Iterable[Tensor]) -> list[Tensor]:
    """This process's rows of every batch, without the batches where it has none."""
    mine = (rows[fabric.global_rank :: fabric.world_size] for rows in batches)
    return [rows for rows in mine if len(rows)]
