"""The numbers that the paper prints (Padhy et al. 2020, tables 1 to 3), and where ours are found."""

from dataclasses import dataclass

NAMES = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100", "svhn": "SVHN"}
FORMULATIONS = ("softmax", "dm", "ova", "ova-dm")


@dataclass(frozen=True)
class Printed:
    """One row of a table of the paper, in the order of `FORMULATIONS`."""

    table: str
    what: str
    values: tuple[float, float, float, float]
    experiment: str  # whose runs have our numbers
    dataset: str
    metric: str


def outside(table: str, experiment: str, name: str, *values: tuple[float, ...]) -> list[Printed]:
    """AUROC, and AUPR with the outside positive, of one outside set."""
    dataset, inside = f"ood/{name}", NAMES[experiment.removesuffix("-desk")]
    kinds = zip(("AUROC", "AUPR"), ("auroc", "aupr_outside"), values, strict=True)
    return [
        Printed(table, f"{inside} against {NAMES[name]}, {kind}", row, experiment, dataset, metric)  # type: ignore[arg-type]
        for kind, metric, row in kinds
    ]


TABLES = [
    Printed("1", "CLINC150, accuracy", (0.9016, 0.8989, 0.9067, 0.8889), "clinc-desk", "test", "accuracy"),
    Printed("1", "CLINC150, ECE", (0.079, 0.083, 0.078, 0.052), "clinc-desk", "test", "ece"),
    *outside("2", "cifar10-desk", "cifar100", (0.7334, 0.7478, 0.8449, 0.6805), (0.6789, 0.7104, 0.8037, 0.6486)),
    *outside("2", "cifar10-desk", "svhn", (0.7026, 0.8264, 0.8934, 0.6191), (0.8058, 0.8940, 0.9248, 0.7725)),
    *outside("3", "cifar100-desk", "cifar10", (0.8003, 0.7862, 0.8019, 0.7669), (0.7587, 0.7488, 0.7601, 0.7274)),
    *outside("3", "cifar100-desk", "svhn", (0.6420, 0.6744, 0.6700, 0.5966), (0.7779, 0.8047, 0.8028, 0.7948)),
]  # fmt: skip
