"""CIFAR-10 as in the paper (section 4 and appendix): ResNet-20 v1, Adam with a schedule, batch 512.

The paper gives optimiser, batch and ranges of the search, not the values it chose. Those here are
the defaults of the authors' released code (lr 0.01, one epoch of warm-up, x 0.2 at 60, 120 and 160)
over its group's 200 epochs; `ova tune cifar10` is the paper's search. Images are normalised by mean
and deviation as in that code, where the text rescales to [-1, 1]. The text's own starts are
`ova-zero` and `ova-dm-zero`.
Evaluated on test, the 19 corruptions x 5 severities, and CIFAR-100 and SVHN as none of the classes.
Expected (paper, table of AUROC / AUPRC; its caption says Wide ResNet 28-10, the histogram of the same
models ResNet-20): CIFAR-100 softmax .7334 / .6789, dm .7478 / .7104,
ova .8449 / .8037, ova-dm .6805 / .6486; SVHN softmax .7026 / .8058, dm .8264 / .8940,
ova .8934 / .9248, ova-dm .6191 / .7725. Under shift `ova-dm` has the lowest ECE.
Cost: 17,600 steps of 512 per run; see docs/experiments.md for seconds per epoch.
Command: ova run cifar10
"""

from ova.nn.formulations import PAPER, PAPER_START
from ova.training.recipe import Experiment, Range, Recipe, each

BASE = Recipe(
    experiment="cifar10", data="cifar10", model="resnet20", formulation="softmax",
    epochs=200, batch_size=512,
    optimiser="adam", lr=0.01, momentum=0.9, eps=1e-7,  # eps: TensorFlow's, so the authors'
    schedule="steps", warmup=1, decay_at=(60, 120, 160), decay_by=0.2,
)  # fmt: skip

EXPERIMENT = Experiment(
    name="cifar10",
    about="the paper's CIFAR-10: ResNet-20, 19 x 5 corruptions, CIFAR-100 and SVHN outside",
    recipes=each(BASE, (*PAPER, *PAPER_START)),
    search={
        "lr": Range(1e-3, 1, log=True),
        "momentum": Range(0.85, 0.99),
        "eps": Range(1e-8, 1e-5, log=True),
    },
    trials=100,
)
