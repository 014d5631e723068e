"""Write the table of docs/choosing.md from the committed results.

python docs/make_choosing.py          writes it
python docs/make_choosing.py --check  exits with 1 when it is not up to date
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

from marked import renew
from scipy.stats import t

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "choosing.md"
EXPERIMENTS = ("toy", "digits", "clinc-desk", "omniglot", "cifar10-desk")
COLUMNS = ("accuracy", "ECE", "calibrated", "ECE, shift", "shift, calibrated", "AUROC")
Values = dict[str, list[float]]


def rows(folder: Path) -> list[dict[str, object]]:
    """The measurements of one run that have a value."""
    lines = (folder / "measurements.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for row in map(json.loads, lines) if row["value"] is not None]


def column(row: dict[str, object]) -> str:
    """The column that a measurement belongs to, or nothing."""
    dataset, metric, calibrated = row["dataset"], row["metric"], "calibration" in row
    if dataset == "test" and metric == "accuracy" and not calibrated:
        return "accuracy"
    if dataset == "test" and metric == "ece":
        return "calibrated" if calibrated else "ECE"
    if dataset == "shift" and metric == "ece":
        return "shift, calibrated" if calibrated else "ECE, shift"
    outside = str(dataset).startswith("ood/") and metric == "auroc" and row.get("score") == "max_p"
    return "AUROC" if outside and not calibrated else ""


def values(experiment: Path) -> dict[str, Values]:
    """For each formulation the values of all seeds; a run's outside sets count by their mean."""
    found: dict[str, Values] = defaultdict(lambda: defaultdict(list))
    for path in sorted(experiment.glob("*/measurements.jsonl")):
        formulation = json.loads((path.parent / "recipe.json").read_text())["formulation"]
        mine: Values = defaultdict(list)
        for row in rows(path.parent):
            if name := column(row):
                mine[name].append(float(row["value"]))  # type: ignore[arg-type]
        for name, numbers in mine.items():
            found[formulation][name].append(mean(numbers))
    return found


def cell(numbers: list[float]) -> str:
    """The mean over seeds with its 95 % interval by Student's t; one seed has no interval."""
    if not numbers:
        return "-"
    if len(numbers) == 1:
        return f"{numbers[0]:.3f}"
    half = t.ppf(0.975, len(numbers) - 1) * stdev(numbers) / len(numbers) ** 0.5
    return f"{mean(numbers):.3f} ± {half:.3f}"


def lines() -> Iterator[str]:
    """The table: experiments one after the other, formulations below each."""
    yield "| | seeds | " + " | ".join(COLUMNS) + " |"
    yield "|---" * (len(COLUMNS) + 2) + "|"
    for name in EXPERIMENTS:
        found = values(ROOT / "results" / name)
        yield f"| **{name}** |" + " |" * (len(COLUMNS) + 1) if found else f"| {name}: not run |"
        for formulation, numbers in sorted(found.items()):
            cells = " | ".join(cell(numbers[column]) for column in COLUMNS)
            yield f"| `{formulation}` | {len(numbers['accuracy'])} | {cells} |"


def main() -> None:
    renew(PAGE, {"evidence": lambda: "\n".join(lines())}, "python docs/make_choosing.py")


if __name__ == "__main__":
    main()
