"""Omniglot with 864 characters to learn and 100 of the same alphabets kept outside: near misses.

Like `omniglot`; what is outside shares script and drawers with what is inside, so it is the harder
test of "none of the above".
Cost: 1,530 steps of 128 per run; see docs/experiments.md for seconds per epoch.
Command: ova run omniglot-near
"""

from dataclasses import replace

from ova.experiments.omniglot import BASE as FAR
from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, each

BASE = replace(FAR, experiment="omniglot-near", data="omniglot-near")

EXPERIMENT = Experiment(
    name="omniglot-near",
    about="864 characters; 100 of the same alphabets outside, and other alphabets",
    recipes=each(BASE, (*PAPER, "softmax-smooth", "ova-smooth", "ova-ball")),
)
