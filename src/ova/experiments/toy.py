"""The paper's 2-D toy (section 3 and appendix): ten classes on a circle, nothing inside or far out.

Expected: 100 % training accuracy for all four formulations; on the ring far outside, a mean
confidence above 0.9 for `softmax` and `ova` and below 0.3 for `ova-dm`.
Cost: seconds per run on one core.
Command: ova run toy
"""

from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, Recipe, each

BASE = Recipe(
    experiment="toy", data="toy", model="mlp", formulation="softmax",
    epochs=127, steps=10_000, batch_size=128,
    optimiser="sgd", lr=0.01, momentum=0.9,
    schedule="cosine",
)  # fmt: skip

EXPERIMENT = Experiment(
    name="toy",
    about="the paper's ten Gaussian classes in the plane: confidence landscapes and class centres",
    recipes=each(BASE, PAPER),
    seeds=3,
)
