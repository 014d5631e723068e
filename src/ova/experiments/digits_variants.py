"""Every formulation on the digits, side by side: what the paper and its code do differently, and other losses.

The paper's text trains `ova-dm` by 2 sigmoid(-d), the released code by sigmoid(-d) on distances between
logits; the start of the paper (`-zero`) beside ours; `dm` with an entropic scale of 10 (`dm-isomax`);
smoothed targets and other binary losses. Otherwise `digits`.
Cost: seconds per run on one core.
Command: ova run digits-variants
"""

from dataclasses import replace

from ova.experiments.digits import BASE as PLAIN
from ova.nn.formulations import FORMULATIONS
from ova.training.recipe import Experiment, each

BASE = replace(PLAIN, experiment="digits-variants")

EXPERIMENT = Experiment(
    name="digits-variants",
    about="every formulation on the digits: the released code's, other starts, scales and losses",
    recipes=each(BASE, tuple(FORMULATIONS)),
    seeds=5,
)
