"""What `ova train` with its defaults does on CLINC150: the figures of docs/tutorials/sentences.md.

The training and validation sentences are the user's CSV, the test and out-of-scope sentences are kept
away from it. Command: python benchmarks/own_clinc.py [FOLDER] [formulation ...], some five to ten
minutes of one core per formulation. A folder that has a trained model is not trained again.
"""

import csv
import sys
from pathlib import Path

from ova.data.clinc import origin
from ova.data.sources import locate
from ova.engine import Machine, launch
from ova.own.folder import facts_of
from ova.own.gathering import FORMULATION, Wish, gather
from ova.own.training import Wanted, train
from ova.predictions import read
from ova.threshold import Threshold, fit_threshold

ROW = "{:<10} {:>8} {:>10} {:>9} {:>9} {:>9} {:>9}"


def write(path: Path, rows: list[tuple[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("sentence", "intent"), *rows])
    return path


def one(folder: Path, data: Path, test: Path, formulation: str) -> None:
    wish = Wish(data=data, text="sentence", label="intent", test=test, formulation=formulation)
    machine, out = Machine(accelerator="cpu"), folder / formulation
    for _ in train(launch(machine), gather(wish), out, machine, Wanted()):
        pass
    said, outside, held = (
        read(out / f"run/predictions/{name}.parquet")
        for name in ("test", "ood/test", "calibration")
    )
    own = Threshold.from_json(facts_of(out)["threshold"])
    for threshold in (own, *(fit_threshold(held, a) for a in (0.98, 0.95, 0.9))):
        kept = threshold.answers(said.confidence)
        shares = (said.correct.mean(), kept.mean(), said.correct[kept].mean())
        refused = 1 - threshold.answers(outside.confidence).mean()
        numbers = [threshold.promise.accuracy or 0, threshold.value, *shares, refused]
        print(ROW.format(formulation, *(f"{number:.3f}" for number in numbers)))


def main() -> None:
    folder, *formulations = sys.argv[1:] or ["clinc-own"]
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    rows = locate(origin(), None).read()
    data = write(place / "clinc.csv", [*rows["train"], *rows["val"]])
    test = write(place / "clinc-test.csv", [*rows["test"], *rows["oos_test"]])
    heads = [
        "formulation",
        "promised",
        "threshold",
        "accuracy",
        "answered",
        "right",
        "refused-outside",
    ]
    print(ROW.format(*heads))
    for formulation in formulations or [FORMULATION]:
        one(place, data, test, formulation)


if __name__ == "__main__":
    main()
