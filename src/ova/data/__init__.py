"""Data sets, each turned into a task by one small adapter.

A new one is a file beside this and a line in `_TABLE`. `ova data` lists what the file's function
`inventory` finds, where it has one.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

from ova.data.task import Task


def _adapter(module: str, function: str, about: str) -> Callable[[Path | None], Task]:
    """The adapter, imported when it is called: each one brings libraries that the rest never need."""

    def load(data_dir: Path | None = None) -> Task:
        task = getattr(import_module(f"ova.data.{module}"), function)(data_dir)
        assert isinstance(task, Task)
        return task

    load.__doc__ = about
    return load


_TABLE = {  # name -> file, its function that makes the task, and what it is
    "toy": ("toy", "load", "ten Gaussian classes on a circle; OOD: far out, centre"),
    "digits": ("digits", "load", "8 x 8 digits 0-7; OOD: 8 and 9"),
    "digits-8": ("digits", "eight", "the same; OOD: 8, and 9 to choose by"),
    "digits-9": ("digits", "nine", "the same; OOD: 9, and 8 to choose by"),
    "cifar10": ("cifar", "cifar10", "CIFAR-10; shift: 19 x 5; OOD: CIFAR-100, SVHN"),
    "cifar100": ("cifar", "cifar100", "CIFAR-100; shift: 19 x 5; OOD: CIFAR-10, SVHN"),
    "clinc": ("clinc", "clinc", "CLINC150, full BERT vocabulary; OOD: out of scope"),
    "clinc-trimmed": ("clinc", "trimmed", "CLINC150, only the word pieces it trains"),
    "clinc-none": ("clinc", "none", "clinc-trimmed with examples of none to train on"),
    "omniglot": ("omniglot", "load", "964 characters; OOD: those of other alphabets"),
    "omniglot-near": ("omniglot", "near", "864 characters; OOD: also 100 near ones"),
    "omniglot-aside": ("omniglot", "aside", "964 characters; ten alphabets to choose by"),
    "imagenet": ("imagenet", "load", "ImageNet from disk; shift: 19 x 5"),
    "imagenet-64": ("imagenet", "small", "the same at 64 x 64"),
}
DATASETS: Mapping[str, Callable[[Path | None], Task]] = {
    name: _adapter(*row) for name, row in _TABLE.items()
}
FILES = tuple(dict.fromkeys(file for file, _, _ in _TABLE.values()))
