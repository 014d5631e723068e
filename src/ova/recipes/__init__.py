"""The experiments, one file each."""

from ova.recipe import Experiment
from ova.recipes import digits, toy

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT for module in (toy, digits)
}
