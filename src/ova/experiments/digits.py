"""Real handwritten digits of 8 x 8 pixels: 0-7 are known, 8 and 9 are none of them, noise is the shift.

Not in the paper; it is here because it needs no download and fills every section of the report.
Cost: seconds per run on one core.
Command: ova run digits
"""

from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, Recipe, each

BASE = Recipe(
    experiment="digits", data="digits", model="convnet-small", formulation="softmax",
    epochs=30, batch_size=64,
    optimiser="adam", lr=1e-2,
    schedule="cosine", warmup=2,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="digits",
    about="scikit-learn's 8 x 8 digits: 0-7 known, 8 and 9 out of distribution, a ladder of noise",
    recipes=each(BASE, (*PAPER, "ova-ball")),
    seeds=3,
)
