"""Data sets, each turned into a task by one small adapter."""

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


DATASETS: Mapping[str, Callable[[Path | None], Task]] = {
    "toy": _adapter("toy", "load", "ten Gaussian classes on a circle; OOD: far out, centre"),
    "digits": _adapter("digits", "load", "8 x 8 digits 0-7; OOD: 8 and 9"),
    "cifar10": _adapter("cifar", "cifar10", "CIFAR-10; shift: 19 x 5; OOD: CIFAR-100, SVHN"),
    "cifar100": _adapter("cifar", "cifar100", "CIFAR-100; shift: 19 x 5; OOD: CIFAR-10, SVHN"),
    "clinc": _adapter("clinc", "clinc", "CLINC150, full BERT vocabulary; OOD: out of scope"),
    "clinc-trimmed": _adapter("clinc", "trimmed", "CLINC150, only the word pieces it trains"),
    "clinc-none": _adapter("clinc", "none", "clinc-trimmed with examples of none to train on"),
    "omniglot": _adapter("omniglot", "load", "964 characters; OOD: those of other alphabets"),
    "omniglot-near": _adapter("omniglot", "near", "864 characters; OOD: also 100 near ones"),
    "imagenet": _adapter("imagenet", "load", "ImageNet from disk; shift: 19 x 5"),
    "imagenet-64": _adapter("imagenet", "small", "the same at 64 x 64"),
}
