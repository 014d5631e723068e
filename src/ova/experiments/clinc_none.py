"""CLINC150 with "none" as a label: 100 out-of-scope sentences are trained on as none of the classes.

Otherwise `clinc-desk`: the difference between the two is what a hundred examples of "none" are worth.
One-vs-all learns them as K times no, softmax as the uniform target.
Cost: 1,888 steps of 64 per run; see docs/experiments.md for seconds per epoch.
Command: ova run clinc-none
"""

from dataclasses import replace

from ova.experiments.clinc_desk import BASE as IN_SCOPE
from ova.training.recipe import Experiment, each

BASE = replace(IN_SCOPE, experiment="clinc-none", data="clinc-none")

EXPERIMENT = Experiment(
    name="clinc-none",
    about="clinc-desk with the 100 out-of-scope training sentences as examples of none",
    recipes=each(BASE, ("softmax", "ova", "ova-ball")),
    seeds=3,
)
