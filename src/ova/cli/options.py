"""Options that several commands share, so that they mean and say the same everywhere."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

Only = Annotated[
    list[str] | None, Option(help="Only these formulations (repeat, or separate by commas).")
]
Settings = Annotated[
    list[str] | None, Option("--set", help="Override a field of the recipe, for example epochs=5.")
]
DataDir = Annotated[Path | None, Option(envvar="OVA_DATA", help="Folder that holds the data sets.")]
Devices = Annotated[int, Option(min=1, help="Processes on this machine.")]
Nodes = Annotated[int, Option(min=1, help="Machines (torchrun or SLURM).")]
Accelerator = Annotated[str, Option(help="auto, cpu, cuda or mps.")]
DeviceBatch = Annotated[
    int, Option(min=0, help="Examples one device holds at a time; 0: its whole share.")
]
OneVsAll = Annotated[
    bool, Option("--one-vs-all", help="Probabilities are one per class and need not sum to 1.")
]
Columns = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=COLUMN,...",
        help="Which columns hold what, where it cannot be guessed (repeat): target=truth, "
        "probs=cat,dog,bird or probs='score *', classes=cat,dog,bird (names of p_0, p_1, ...), "
        "prediction=, confidence=, logits=, id=; of one column of probabilities for two classes "
        "the label whose it is, positive=yes.",
    ),
]
Logits = Annotated[
    str,
    Option(
        help="What makes probabilities of logits: softmax, or sigmoid for one answer per class."
    ),
]
ModelFolder = Annotated[Path, Argument(help="Folder that `ova train` wrote.")]
Log = Annotated[
    str,
    Option(
        metavar="NAME",
        help="Also write each epoch and the measurements for tensorboard (into the run's folder), "
        "mlflow (where MLFLOW_TRACKING_URI says) or wandb (WANDB_MODE=offline: into the run's folder).",
    ),
]
Compile = Annotated[bool, Option("--compile", help="Compile the backbone.")]


def names(parts: list[str] | None) -> list[str]:
    """The names in a repeated option whose values may also be separated by commas.

    >>> names(["softmax,ova", "dm"])
    ['softmax', 'ova', 'dm']
    """
    return [name for part in parts or [] for name in part.split(",") if name]


def logger(name: str, tensorboard: bool = False) -> str:
    """The logger that `--log` or the older `--tensorboard` asks for, if its extra is installed."""
    from ova.training.loggers import installed

    wanted = name or ("tensorboard" if tensorboard else "")
    return installed(wanted) if wanted else ""
