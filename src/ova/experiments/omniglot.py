"""A thousand classes with fifteen examples each: Omniglot's 964 characters, not in the paper.

The paper ends where one-vs-all with distances does not train from scratch at K = 1000. This is the
smallest real task of that kind; `ova-zero` and `ova-dm-zero` start as the paper does. Drawers 1-15
train, 16 validates, 17-20 test; shifted by rotation, thickness, elastic and noise ladders; the 659
characters of other alphabets are none of the classes.
Cost: 1,695 steps of 128 per run; see docs/experiments.md for seconds per epoch.
Command: ova run omniglot
"""

from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, Recipe, each

BASE = Recipe(
    experiment="omniglot", data="omniglot", model="convnet-medium", formulation="softmax",
    epochs=15, batch_size=128, dropout=0.2,
    optimiser="adamw", lr=3e-3, weight_decay=0.01,
    schedule="cosine", warmup=1,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="omniglot",
    about="964 handwritten characters from 15 drawings each; other alphabets outside",
    recipes=each(
        BASE,
        (*PAPER, "ova-ball", "ova-zero", "ova-dm-zero", "softmax-smooth", "ova-smooth"),
    ),
)
