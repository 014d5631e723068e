"""CIFAR-100 as in the paper (section 4 and appendix): WRN-28-10 with L2, SGD Nesterov, batch 512.

The paper gives model, optimiser, batch, epochs and ranges of the search; the rest is its group's
baseline (lr 0.1 x 512 / 128, one epoch of warm-up, x 0.2 at 60, 120 and 160, L2 2e-4).
`ova tune cifar100` is the paper's search; its learning rates end below that baseline's, and its L2
factors are doubled here as in the baseline. Evaluated on test, the paper's 17 corruptions x 5
severities (without motion_blur and snow), and CIFAR-10 and SVHN as none of the classes.
Expected (paper, table of AUROC / AUPRC): CIFAR-10 softmax .8003 / .7587, dm .7862 / .7488,
ova .8019 / .7601, ova-dm .7669 / .7274; SVHN softmax .6420 / .7779, dm .6744 / .8047,
ova .6700 / .8028, ova-dm .5966 / .7948. The group's softmax baseline: accuracy 79.8 %, ECE .086,
corrupted 51.4 % and .239.
Cost: 17,600 steps of 512 per run, 5.2 G multiply-adds forward per image: for GPUs, see docs/scale.md.
Command: ova run cifar100 --devices 8
"""

from ova.nn.formulations import PAPER, PAPER_START
from ova.training.recipe import Experiment, Range, Recipe, each

BASE = Recipe(
    experiment="cifar100", data="cifar100", model="wrn-28-10", formulation="softmax",
    epochs=200, batch_size=512, shift="paper-17",
    optimiser="sgd", lr=0.4, momentum=0.9, weight_decay=4e-4,  # their 2e-4 |w|^2 has the gradient 4e-4 w
    schedule="steps", warmup=1, decay_at=(60, 120, 160), decay_by=0.2,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="cifar100",
    about="the paper's CIFAR-100: WRN-28-10, 17 x 5 corruptions, CIFAR-10 and SVHN outside",
    recipes=each(BASE, (*PAPER, *PAPER_START)),
    search={"lr": Range(1e-4, 1e-1, log=True), "weight_decay": Range(2e-5, 2e-3, log=True)},
    trials=50,
)
