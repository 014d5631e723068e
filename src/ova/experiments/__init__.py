"""The experiments, one file each; a new one is a file beside this and a line in `_FILES`."""

from importlib import import_module

from ova.training.recipe import Experiment

_FILES = (
    "toy",
    "digits",
    "digits_variants",
    "cifar10",
    "cifar100",
    "imagenet",
    "clinc",
    "cifar10_desk",
    "cifar10_resnet20",
    "cifar100_desk",
    "clinc_desk",
    "clinc_none",
    "omniglot",
    "omniglot_near",
)
_FOUND: list[Experiment] = [import_module(f"ova.experiments.{file}").EXPERIMENT for file in _FILES]
EXPERIMENTS = {experiment.name: experiment for experiment in _FOUND}
