"""The numbers that the paper prints (tables 1 to 3), to stand beside ours.

Padhy et al., "Revisiting One-vs-All Classifiers for Predictive Uncertainty and
Out-of-Distribution Detection in Neural Networks", 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ova.nn.formulations import PAPER, PAPER_START
from ova.report import select
from ova.report.intervals import estimates
from ova.report.markup import Markup, el, table
from ova.report.numbers import interval, shown
from ova.report.runs import labels
from ova.training.run_folder import Run


@dataclass(frozen=True)
class Column:
    """One printed column: where our number comes from, and the paper's four."""

    title: str
    metric: str
    dataset: str
    unit: str
    printed: tuple[float, float, float, float]  # in the order of PAPER


@dataclass(frozen=True)
class Printed:
    """One printed table."""

    name: str
    data: str
    caption: str
    columns: tuple[Column, ...]


T1 = Printed(
    "T1",
    "CLINC150",
    "Table T1: CLINC150, BERT-Mini; the paper's means of 5 runs",
    (
        Column("accuracy", "accuracy", "test", "%", (0.9016, 0.8989, 0.9067, 0.8889)),
        Column("ECE", "ece", "test", "", (0.079, 0.083, 0.078, 0.052)),
    ),
)
T2 = Printed(
    "T2",
    "CIFAR-10",
    "Table T2: CIFAR-10 against other images; an unknown image is the positive class of the AUPRC. "
    "The paper's caption says Wide ResNet 28-10, its histogram of the same models ResNet-20",
    (
        Column("CIFAR-100 AUROC", "auroc", "ood/cifar100", "", (0.7334, 0.7478, 0.8449, 0.6805)),
        Column(
            "CIFAR-100 AUPRC", "aupr_outside", "ood/cifar100", "", (0.6789, 0.7104, 0.8037, 0.6486)
        ),
        Column("SVHN AUROC", "auroc", "ood/svhn", "", (0.7026, 0.8264, 0.8934, 0.6191)),
        Column("SVHN AUPRC", "aupr_outside", "ood/svhn", "", (0.8058, 0.8940, 0.9248, 0.7725)),
    ),
)
T3 = Printed(
    "T3",
    "CIFAR-100",
    "Table T3: CIFAR-100 against other images; an unknown image is the positive class of the AUPRC",
    (
        Column("CIFAR-10 AUROC", "auroc", "ood/cifar10", "", (0.8003, 0.7862, 0.8019, 0.7669)),
        Column(
            "CIFAR-10 AUPRC", "aupr_outside", "ood/cifar10", "", (0.7587, 0.7488, 0.7601, 0.7274)
        ),
        Column("SVHN AUROC", "auroc", "ood/svhn", "", (0.6420, 0.6744, 0.6700, 0.5966)),
        Column("SVHN AUPRC", "aupr_outside", "ood/svhn", "", (0.7779, 0.8047, 0.8028, 0.7948)),
    ),
)
# The longest name first: cifar100 also starts with cifar10.
TABLES = {"cifar100": T3, "cifar10": T2, "clinc": T1}


def printed_for(experiment: str) -> Printed | None:
    """The paper's table for an experiment.

    >>> printed_for("cifar100-desk").name, printed_for("cifar10").name, printed_for("digits")
    ('T3', 'T2', None)
    """
    return next((found for name, found in TABLES.items() if experiment.startswith(name)), None)


def beside(printed: Printed, runs: Sequence[Run]) -> Markup:
    """The paper's number and ours, for each formulation and column."""
    names = labels(runs)
    ours = [estimates(select.values(runs, c.metric, c.dataset), names) for c in printed.columns]
    head: list[Any] = ["Formulation"]
    for column in printed.columns:
        head += [f"{column.title}, paper", f"{column.title}, ours"]
    body: list[list[Any]] = []
    for name in [*PAPER, *(label for label in names if label not in PAPER)]:
        row: list[Any] = [name]
        for column, found in zip(printed.columns, ours, strict=True):
            paper = PAPER_START.get(name, name)
            theirs = column.printed[PAPER.index(paper)] if paper in PAPER else None
            row += [shown(theirs, column.unit), own(found.get(name), column.unit)]
        body.append(row)
    return table(head, body, printed.caption, "paper")


def own(estimate: Any, unit: str) -> Markup:
    """Our value with its interval, or that there is none."""
    if estimate is None:
        return el("span", "not run", class_="quiet")
    return el(
        "span", el("b", shown(estimate.mean, unit)), " ", el("small", interval(estimate, unit))
    )
