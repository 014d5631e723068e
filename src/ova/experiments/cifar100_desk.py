"""The paper's CIFAR-100 protocol within a desktop CPU's means: WRN-16-2 for 5 epochs.

SGD Nesterov and L2 as in `cifar100` with a schedule that peaks early. `dm` gets a faster last layer: while
all centres lie at zero the network has no gradient at all, and five epochs are too few to wait for them
to part. Evaluated on the whole test set, on the first 2,000 images of the paper's 17 corruptions x 5
severities, and on CIFAR-10 and SVHN as none of the classes.
Expected: less accurate than the paper's WRN-28-10; the order of the formulations is what it is for.
Cost: 1,760 steps of 128 per run; see docs/experiments.md for seconds per epoch.
Command: ova run cifar100-desk
"""

from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, Range, Recipe, each

BASE = Recipe(
    experiment="cifar100-desk", data="cifar100", model="wrn-16-2", formulation="softmax",
    epochs=5, batch_size=128, shift="paper-17", shift_examples=2000,
    optimiser="sgd", lr=0.1, momentum=0.9, weight_decay=5e-4, clip=5.0,  # clip: a precaution, not tuned
    schedule="cosine", warmup=1,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="cifar100-desk",
    about="CIFAR-100 for a desktop CPU: WRN-16-2 for 5 epochs, 17 x 5 shifts, both outside sets",
    recipes=each(BASE, PAPER, head_lr={"dm": 10.0}),
    search={"lr": Range(1e-2, 1, log=True), "weight_decay": Range(2e-5, 2e-3, log=True)},
    trials=8,
)
