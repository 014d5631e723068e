"""The experiments, one file each."""

from ova.experiments import (
    cifar10,
    cifar10_desk,
    cifar100,
    cifar100_desk,
    clinc,
    clinc_desk,
    clinc_none,
    digits,
    digits_variants,
    imagenet,
    omniglot,
    omniglot_near,
    toy,
)
from ova.training.recipe import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        toy,
        digits,
        digits_variants,
        cifar10,
        cifar100,
        imagenet,
        clinc,
        cifar10_desk,
        cifar100_desk,
        clinc_desk,
        clinc_none,
        omniglot,
        omniglot_near,
    )
}
