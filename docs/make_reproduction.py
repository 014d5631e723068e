"""Write the tables of docs/reproduction.md from the committed results.

python docs/make_reproduction.py          writes them
python docs/make_reproduction.py --check  exits with 1 when they are not up to date
"""

import json
from statistics import mean

from committed import ROOT, Run, markdown, runs, spread
from make_readme import VARIANTS, headline
from marked import renew

EXPERIMENTS = ("toy", "digits", "clinc-desk", "cifar10-desk", "cifar100-desk", "omniglot")
SHOWN = ("softmax", "dm", "ova", "ova-dm", "ova-ball")
THRESHOLD = 0.7
COLUMNS = {
    "accuracy": ("test", "accuracy"),
    "confidence": ("test", "confidence"),
    "ECE": ("test", "ece"),
    "accuracy, shift": ("shift", "accuracy"),
    "ECE, shift": ("shift", "ece"),
    "ECE, shift 1": ("shift/*/1", "ece"),
    "ECE, shift 5": ("shift/*/5", "ece"),
    "AUROC": ("ood/", "auroc"),
    "centre offset": ("train", "centre_offset"),
}


def answered(run: Run) -> list[str]:
    """Accuracy and share of what is answered above the threshold, the mean over mixed outside sets."""
    path = run.folder / "curves.json"
    curves = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    mixed = [
        curve["columns"]
        for curve in curves
        if curve["curve"] == "accuracy_confidence" and "+ood/" in curve["dataset"]
    ]
    found = [
        [at_threshold(columns, name) for columns in mixed] for name in ("accuracy", "answered")
    ]
    known = [[value for value in values if value is not None] for values in found]
    return [f"{mean(values):.3f}" if values else "-" for values in known]


def at_threshold(columns: dict[str, list[float | None]], name: str) -> float | None:
    """The value where the curve comes nearest to the threshold; none where nothing is answered."""
    away = [abs(float(where or 0) - THRESHOLD) for where in columns["threshold"]]
    return columns[name][away.index(min(away))]


def claims() -> str:
    """What the claims of the paper are about: all formulations of all experiments that were run."""
    rows = []
    for experiment in EXPERIMENTS:
        found = {name: seeds for name, seeds in runs(experiment).items() if name in SHOWN}
        rows.append([f"**{experiment}**"] + [""] * (len(COLUMNS) + 3))
        for name, seeds in found.items():
            cells = [
                spread(mean(v) for run in seeds if (v := run.values(*which)))
                for which in COLUMNS.values()
            ]
            rows.append([f"`{name}`", str(len(seeds)), *cells, *answered(seeds[0])])
    return markdown(["seeds", *COLUMNS, "right of answered", "answered"], rows)


def main() -> None:
    parts = {"claims": claims, "variants": lambda: headline(VARIANTS)}
    renew(ROOT / "docs" / "reproduction.md", parts, "make readme")


if __name__ == "__main__":
    main()
