"""The paper's CIFAR-10 protocol within a desktop CPU's means: fewer epochs, 2,000 images per shift.

ResNet-20 and Adam as in `cifar10`, with smaller batches and a schedule that peaks early; learning
rate and schedule are not tuned. Evaluated on the whole test set, on the first 2,000 images of all 19
corruptions x 5 severities, and on CIFAR-100 and SVHN as none of the classes.
Expected: less accurate than the paper's 200 epochs; the order of the formulations under shift and
on the outside sets is what it is for.
Cost: 2,816 steps of 128 per run; see docs/experiments.md for seconds per epoch.
Command: ova run cifar10-desk
"""

from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, Range, Recipe, each

BASE = Recipe(
    experiment="cifar10-desk", data="cifar10", model="resnet20", formulation="softmax",
    epochs=8, batch_size=128, shift_examples=2000,
    optimiser="adam", lr=3e-3,
    schedule="cosine", warmup=1,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="cifar10-desk",
    about="CIFAR-10 for a desktop CPU: ResNet-20 for 8 epochs, all shifts, both outside sets",
    recipes=each(BASE, (*PAPER, "ova-ball")),
    search={"lr": Range(3e-4, 3e-2, log=True)},
    trials=8,
)
