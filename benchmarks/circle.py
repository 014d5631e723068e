"""The whole circle on CLINC150: 120 intents known, a log with the other 30 and out-of-scope sentences.

Trains a small network from scratch, reviews the log, lets the truth fill in the sheet, extends, and prints how
pure and how whole the groups are (beside HDBSCAN and beside the words of the sentences), and what was
answered before and after on sentences that nothing has seen. The 30 intents are drawn by the seed; where two
groups stay two (`APART_TEXTS`) was looked for with seed 0, so that other seeds are fair. Data: OVA_DATA.
Command: python benchmarks/circle.py [FOLDER] [seed], some minutes of one core. A folder that has a
trained model is not trained again.
"""

import csv
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

import ova
from ova.data.clinc import origin
from ova.data.sources import locate
from ova.modelfolder.review.groups import (
    directions,
    distances,
    grouped,
    likeness,
    of_words,
)
from ova.predictions.columns import Array

LEFT_OUT, OOS, LEAST = 30, "oos", 5  # intents, out of scope, rows of a group that is counted
EPOCHS = 5
WAYS = {False: "new rows only", None: "by itself", True: "all rows fitted"}
ROW = "{:<34} {:>7} {:>7} {:>7} {:>7} {:>7} {:>8}"
Rows = list[tuple[str, str]]


def write(path: Path, rows: Rows, *, labels: bool = True) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        header = ("sentence", "intent") if labels else ("sentence",)
        csv.writer(file).writerows([header, *(row if labels else row[:1] for row in rows)])
    return path


def judged(name: str, groups: list[Array], true: Array, new: set[str], seconds: float) -> None:
    """Purity of all groups and of those of a new intent, and how much of the new intents they hold."""
    counts = [Counter(true[rows].tolist()) for rows in groups if len(rows) >= LEAST]
    most = [count.most_common(1)[0] for count in counts]
    pure = sum(k for _, k in most) / max(1, sum(c.total() for c in counts))
    of_new = [(c, k, name) for c, (name, k) in zip(counts, most, strict=True) if name in new]
    held = sum(k for _, k, _ in of_new)
    pure_new = held / max(1, sum(c.total() for c, _, _ in of_new))
    share = held / sum(true == name for name in new).sum()
    found = len({name for _, _, name in of_new})
    numbers = (f"{pure:.3f}", f"{pure_new:.3f}", f"{share:.3f}")
    print(ROW.format(name, len(counts), found, *numbers, f"{seconds:.1f} s"))


def hdbscan(x: Array) -> list[Array]:
    """The groups that HDBSCAN finds by the same distances."""
    from scipy.spatial.distance import squareform
    from sklearn.cluster import HDBSCAN

    d = squareform(distances(directions(x)))
    of = HDBSCAN(LEAST, min_samples=3, metric="precomputed", copy=True).fit_predict(d)
    return [np.flatnonzero(of == k) for k in np.unique(of) if k >= 0]


def answered(
    name: str, model: "ova.modelfolder.trained.TrainedModel", rows: Rows, new: set[str]
) -> None:
    """What is answered of old intents, new ones and out of scope, and how much of it rightly."""
    said = np.array([row.label or "" for row in model.predict([text for text, _ in rows])])
    true = np.array([intent for _, intent in rows])
    kinds = np.where(true == OOS, OOS, np.where(np.isin(true, [*new]), "new", "old"))
    words = []
    for kind in ("old", "new", OOS):
        of, kept = kinds == kind, (kinds == kind) & (said != "")
        right = (
            "" if kind == OOS or not kept.any() else f", {(said == true)[kept].mean():.1%} right"
        )
        words.append(f"{kind} {kept.sum() / of.sum():.1%} answered{right}")
    print(f"{name}: {'; '.join(words)}")


def fill(sheet: Path, out: Path, truth: dict[str, str], known: tuple[str, ...]) -> Path:
    """The sheet as somebody would fill it in who is always right."""
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        intent = (
            truth[row["sentence"].removeprefix("'")]
            if row["sentence"] not in truth
            else truth[row["sentence"]]
        )
        row["label"] = "none" if intent == OOS else intent if intent in known else f"new: {intent}"
    with out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return out


def main() -> None:
    place = Path(sys.argv[1] if len(sys.argv) > 1 else "circle")
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    place.mkdir(parents=True, exist_ok=True)
    sets = locate(origin(), None).read()
    names = sorted({intent for _, intent in sets["train"]})
    draw = np.random.default_rng(seed)
    new = {names[k] for k in draw.permutation(len(names))[:LEFT_OUT]}
    known = [row for part in ("train", "val") for row in sets[part] if row[1] not in new]
    data = write(place / f"known-{seed}.csv", known)
    unknown = [row for row in [*sets["train"], *sets["val"]] if row[1] in new]
    later = [*sets["test"], *sets["oos_test"]]
    later = [later[k] for k in draw.permutation(len(later))]
    seen, tests = later[: len(later) // 2], later[len(later) // 2 :]
    some = [unknown[k] for k in draw.permutation(len(unknown))[: LEFT_OUT * 40]]
    log = [*seen, *some]
    truth: dict[str, str] = {}
    for text, intent in log:
        truth.setdefault(text, intent)
    folder = place / f"model-{seed}"
    clock = time.perf_counter()
    if folder.exists():
        model = ova.load(folder)
    else:
        options = {"text": "sentence", "label": "intent", "epochs": EPOCHS, "batch_size": 64}
        model = ova.train(data, out=folder, **options)  # type: ignore[arg-type]
    print(f"trained on {len(known)} sentences: {time.perf_counter() - clock:.1f} s; {model}")
    clock = time.perf_counter()
    out = place / f"review-{seed}-{time.time_ns()}"
    found = model.review(write(place / f"log-{seed}.csv", log, labels=False), out=out)
    print(*found.lines(), f"reviewed in {time.perf_counter() - clock:.1f} s", sep="\n")
    texts = [str(text) for text in found.asked.cells["sentence"]]
    true = np.array([truth[text] for text in texts])
    print(ROW.format("groups of 5 or more", "groups", "intents", "pure", "of new", "share", "time"))
    f, words = found.asked.features, of_words(texts)
    assert words is not None
    both, apart = likeness(f, texts)
    ways = {
        "features and words (ours)": lambda: grouped(both, apart)[0],
        "features and words, HDBSCAN": lambda: hdbscan(both),
        "features": lambda: grouped(f)[0],
        "features, HDBSCAN": lambda: hdbscan(f),
        "words": lambda: grouped(words)[0],
    }
    for name, way in ways.items():
        clock = time.perf_counter()
        groups = way()
        judged(name, groups, true, new, time.perf_counter() - clock)
    filled = fill(out / "review.csv", place / f"filled-{seed}.csv", truth, model.classes)
    answered("before", model, tests, new)
    for refit in (False, None, True):
        clock = time.perf_counter()
        to = out.with_name(f"{out.name}-{WAYS[refit].replace(' ', '-')}")
        longer = model.extend(filled, data=data, out=to, refit=refit)
        seconds = time.perf_counter() - clock
        answered(WAYS[refit], longer, tests, new)
        print(f"  in {seconds:.1f} s; {longer.threshold}")


if __name__ == "__main__":
    main()
