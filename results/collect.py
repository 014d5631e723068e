"""Keep the evidence of complete runs: recipes, measurements, logs and manifests, without weights.

    python results/collect.py runs      copies into results/<experiment>/<recipe id>/
    python results/collect.py --time    says how long the committed recipes took

Curves are kept for seed 0 only: they are large, and one seed draws every figure.
"""

import json
import shutil
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).parent
SMALL = ("recipe.json", "measurements.jsonl", "manifest.json", "log.jsonl")


def collect(runs: Path) -> list[Path]:
    """Copy the small files of every complete run; the folders they went to."""
    kept = []
    for measurements in sorted(runs.glob("*/*/measurements.jsonl")):
        folder = measurements.parent
        target = HERE / folder.parent.name / folder.name
        target.mkdir(parents=True, exist_ok=True)
        seed = json.loads((folder / "recipe.json").read_text())["seed"]
        for name in (*SMALL, "curves.json") if seed == 0 else SMALL:
            shutil.copyfile(folder / name, target / name)
        if (folder / "calibration.json").exists():  # not of runs from before there was one
            shutil.copyfile(folder / "calibration.json", target / "calibration.json")
        kept.append(target)
    return kept


def seconds() -> dict[str, float]:
    """How long the committed runs of each experiment took together."""
    spent: dict[str, float] = defaultdict(float)
    for path in sorted(HERE.glob("*/*/manifest.json")):
        spent[path.parents[1].name] += sum(json.loads(path.read_text())["seconds"].values())
    return spent


def main() -> None:
    if sys.argv[1:] == ["--time"]:
        for experiment, spent in seconds().items():
            print(f"{experiment}: {spent / 60:.1f} minutes when the committed results were made")
        print(f"all: {sum(seconds().values()) / 60:.1f} minutes; complete runs are not run again")
        return
    for runs in sys.argv[1:] or ["runs"]:
        print(f"{len(collect(Path(runs)))} complete runs of {runs} are in {HERE.name}/")


if __name__ == "__main__":
    main()
