"""Write the tables of docs/choosing.md from the committed results.

python docs/make_choosing.py          writes them
python docs/make_choosing.py --check  exits with 1 when they are not up to date
"""

from statistics import mean, stdev

from committed import ROOT, Run, markdown, runs
from marked import renew
from scipy.stats import t

from ova.data.drawings import LADDERS

EXPERIMENTS = (
    "toy",
    "digits",
    "clinc-desk",
    "clinc-none",
    "omniglot",
    "omniglot-near",
    "cifar10-desk",
)
COLUMNS = {  # data set, metric, whether calibrated
    "accuracy": ("test", "accuracy", False),
    "ECE": ("test", "ece", False),
    "calibrated": ("test", "ece", True),
    "accuracy, shift": ("shift", "accuracy", False),
    "ECE, shift": ("shift", "ece", False),
    "shift, calibrated": ("shift", "ece", True),
    "AUROC": ("ood/", "auroc", False),
}


def cell(seeds: list[Run], which: tuple[str, str, bool]) -> str:
    """The mean over seeds with its 95 % interval by Student's t; a run's sets count by their mean."""
    values = [mean(found) for run in seeds if (found := run.values(*which))]
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.3f}"
    half = t.ppf(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return f"{mean(values):.3f} ± {half:.3f}"


def evidence() -> str:
    """The table: experiments one after the other, formulations below each."""
    rows = []
    for experiment in EXPERIMENTS:
        found = runs(experiment)
        rows.append(
            [f"**{experiment}**" + ("" if found else ": not run")] + [""] * (len(COLUMNS) + 1)
        )
        for name, seeds in found.items():
            cells = [cell(seeds, which) for which in COLUMNS.values()]
            rows.append([f"`{name}`", str(len(seeds)), *cells])
    return markdown(["seeds", *COLUMNS], rows)


def ladders() -> str:
    """Omniglot by kind of shift: the means over the five steps of a ladder."""
    columns = {
        f"{ladder}, {what}": (f"shift/{ladder}/", metric, calibrated)
        for ladder in LADDERS
        for what, metric, calibrated in (
            ("accuracy", "accuracy", False),
            ("calibrated ECE", "ece", True),
        )
    }
    rows = [
        [f"`{name}`", *(cell(seeds, which) for which in columns.values())]
        for name, seeds in runs("omniglot").items()
    ]
    return markdown(columns, rows)


def main() -> None:
    page = ROOT / "docs" / "choosing.md"
    renew(page, {"evidence": evidence, "ladders": ladders}, "make readme")


if __name__ == "__main__":
    main()
