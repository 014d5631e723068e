"""Data sets, each turned into a task by one small adapter."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from ova.data.task import Task


def _adapter(module: str, function: str = "load") -> Callable[[Path | None], Task]:
    """The adapter, imported when it is called: each one brings libraries that the rest never need."""

    def load(data_dir: Path | None = None) -> Task:
        task = getattr(import_module(f"ova.data.{module}"), function)(data_dir)
        assert isinstance(task, Task)
        return task

    return load


DATASETS: Mapping[str, Callable[[Path | None], Task]] = {
    "toy": _adapter("toy"),
    "digits": _adapter("digits"),
    "cifar10": _adapter("cifar", "cifar10"),
    "cifar100": _adapter("cifar", "cifar100"),
    "clinc": _adapter("clinc", "clinc"),
    "clinc-trimmed": _adapter("clinc", "trimmed"),
    "clinc-none": _adapter("clinc", "none"),
    "imagenet": _adapter("imagenet"),
    "imagenet-64": _adapter("imagenet", "small"),
}
