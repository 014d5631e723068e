"""What `ova train` with its defaults does on CLINC150: the figures of docs/tutorials/sentences.md.

Each figure by the score that was chosen, and by max p. The training and validation sentences are the user's CSV, the test and out-of-scope sentences are kept
away from it. A promise holds for sentences like those of the CSV: below the table, how often it was
kept when the calibration sentences were halved at random, fitted on one half and tried on the other.
Command: python benchmarks/own_clinc.py [FOLDER] [formulation ...], some five to ten minutes of one
core per formulation. A folder that has a trained model is not trained again.
"""

import csv
import sys
from pathlib import Path

import numpy as np

from ova.data.clinc import origin
from ova.data.sources import locate
from ova.files import read_lines
from ova.metrics.choice import PLAIN
from ova.metrics.ranking import auroc, rank
from ova.modelfolder.deciding import judged
from ova.modelfolder.evidence import Evidence
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.nn.formulations import DEFAULT
from ova.posthoc.threshold import Promise, fit_threshold
from ova.predictions import Predictions, read
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request

HALVINGS = 200
SETS = ("test", "ood/test", "calibration")
ROW = "{:<10} {:<15} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9}"


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence", "intent"), *rows])
    return path


def one(folder: Path, data: Path, test: Path, formulation: str) -> None:
    wish = Request(data=data, text="sentence", label="intent", test=test, formulation=formulation)
    machine, out, gathered = Machine(accelerator="cpu"), folder / formulation, gather(wish)
    for _ in train(launch(machine), gathered, out, machine, Promise()):
        pass
    model = load(out)
    sets = {name: read(out / f"run/predictions/{name}.parquet") for name in SETS}
    own = {"own": model.threshold}
    for name in dict.fromkeys([model.evidence.name, PLAIN]):
        by = model.evidence if name == model.evidence.name else Evidence()
        said, outside, held = judged(by, model.outputs, gathered, sets).values()
        fitted = {f"{a}": fit_threshold(held, a) for a in (0.99, 0.98, 0.95, 0.9)}
        for threshold in ((own if by is model.evidence else {}) | fitted).values():
            kept = threshold.answers(said.confidence)
            shares = (said.correct.mean(), kept.mean(), said.correct[kept].mean())
            refused = 1 - threshold.answers(outside.confidence).mean()
            numbers = [threshold.promise.accuracy or 0, threshold.value, *shares, refused]
            print(ROW.format(formulation, name, *(f"{number:.3f}" for number in numbers)))
        area = auroc(rank(said.confidence, outside.confidence))
        print(f"{formulation}, {name}: out-of-scope auroc {area:.4f}")
    print(f"{formulation}: {model.evidence.name} decides: {model.evidence.why}")
    said, outside, held = sets.values()
    for name, rows in (("test", said), ("calibration", held)):
        share = rows.correct.mean()
        half = 1.96 * (share * (1 - share) / len(rows)) ** 0.5
        print(f"{formulation}, {name}: {share:.1%} ± {half:.1%} of {len(rows)} right")
    for row in read_lines(out / "run/measurements.jsonl"):
        if (row["dataset"], row["metric"]) == ("test", "ece"):
            how = f", calibrated by {row['calibration']}" if "calibration" in row else ""
            print(f"{formulation}, {row['dataset']}: {row['metric']} {row['value']:.3f}{how}")
    for accuracy in (0.99, 0.98, 0.95):
        kept_often, answered = halved(held, accuracy)
        print(
            f"{formulation}, {accuracy:.0%} promised on a random half of {len(held)}: "
            f"kept on the other half {kept_often:.1%} of {HALVINGS} times, {answered:.1%} answered"
        )


def halved(held: Predictions, accuracy: float) -> tuple[float, float]:
    """How often a promise fitted on one half is kept on the other, and the mean share answered.

    The other half only samples the true accuracy, so a promise counts as broken when that sample
    is below it by more than one binomial standard error.
    """
    draw, kept, shares = np.random.default_rng(0), 0, []
    for _ in range(HALVINGS):
        order = draw.permutation(len(held))
        fitted, tried = np.array_split(order, 2)
        threshold = fit_threshold(held.take(fitted), accuracy)
        answered = threshold.answers(held.confidence[tried])
        n = max(int(answered.sum()), 1)
        right = held.correct[tried][answered].mean() if answered.any() else 1.0
        kept += right >= accuracy - (accuracy * (1 - accuracy) / n) ** 0.5
        shares.append(answered.mean())
    return kept / HALVINGS, float(np.mean(shares))


def main() -> None:
    folder, *formulations = sys.argv[1:] or ["clinc-own"]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    rows = locate(origin(), None).read()
    data = write(place / "clinc.csv", [*rows["train"], *rows["val"]])
    test = write(place / "clinc-test.csv", [*rows["test"], *rows["oos_test"]])
    heads = [
        "formulation",
        "score",
        "promised",
        "threshold",
        "accuracy",
        "answered",
        "right",
        "refused-outside",
    ]
    print(ROW.format(*heads))
    for formulation in formulations or [DEFAULT]:
        one(place, data, test, formulation)


if __name__ == "__main__":
    main()
