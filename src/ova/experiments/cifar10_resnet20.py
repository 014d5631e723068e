"""The paper's CIFAR-10 network within a desktop CPU's means: ResNet-20 for 20 epochs.

The network of `cifar10` with a schedule that uses its time: SGD Nesterov with L2, rates that rise for
five epochs and fall in a line to zero, crops and flips as usual. On a processor that has bfloat16
`--set precision=bf16-mixed` is quicker. Centres that all start at zero (`dm`) get a faster last layer,
variances (`ova-ball`) a slower one. Evaluated as `cifar10-desk`.
Expected: the aim is 90 % on the test set.
Cost: 7,040 steps of 128 per run; see docs/experiments.md for seconds per epoch.
Command: ova run cifar10-resnet20
"""

from ova.nn.formulations import PAPER
from ova.training.recipe import Experiment, Range, Recipe, each

BASE = Recipe(
    experiment="cifar10-resnet20", data="cifar10", model="resnet20", formulation="softmax",
    epochs=20, batch_size=128, shift_examples=2000,
    optimiser="sgd", lr=0.2, momentum=0.9, weight_decay=5e-4,
    schedule="linear", warmup=5,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="cifar10-resnet20",
    about="CIFAR-10 with the paper's ResNet-20 for 20 epochs on a desktop CPU, all shifts, both outside sets",
    recipes=each(BASE, (*PAPER, "ova-ball"), head_lr={"dm": 10.0, "ova-ball": 0.1}),
    search={"lr": Range(3e-2, 1, log=True)},
    trials=8,
)
