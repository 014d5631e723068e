"""How often a report's verdict is wrong, and how often it sees a difference that is there.

    python benchmarks/verdicts.py [--repetitions 1000]

Made models, a few seeds each, answer the same made test set; a seed moves a whole model, and each
model finds other examples hard. Where all have the same truth every "clearly ahead" is false. Beside
it the rule that was used before: intervals over seeds that do not overlap.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

from ova.files import Row
from ova.metrics import METRICS, detection
from ova.metrics.halves import COUNT, Halved, auroc_of_sets, of_set
from ova.predictions import Predictions, SetName
from ova.report.intervals import LEVEL, estimates, verdict

TEST, OUTSIDE = SetName("test"), SetName("ood/other")
Floats = np.ndarray
Made = Callable[[np.random.Generator, int, int, Sequence[float]], list[Row]]


def said(confidence: Floats, right: Floats) -> Predictions:
    n = len(confidence)
    zeros = np.zeros(n, np.int32)
    wrong = (~right).astype(np.int32)
    target = zeros if right.any() else zeros - 1
    return Predictions(
        id=np.arange(n), target=target, prediction=wrong, confidence=confidence,
        classes=2, normalised=True,
    )  # fmt: skip


def row(label: int, seed: int, n: int, value: float | None, halved: Halved | None) -> Row:
    assert halved is not None
    found = {"halves": halved.values.tolist(), "excess": halved.excess}
    return {"label": f"{label}", "seed": seed, "value": value, "n": n, **found}


def effects(
    rng: np.random.Generator, shape: tuple[int, int, int], luck: float = 0.1, moved: float = 0.01
) -> Floats:
    """Per model, seed and example a standard normal, plus what a seed does to a whole model.

    Half of its variance all models share; of the rest, `luck` differs from seed to seed.
    """
    models, seeds, n = shape
    everyone, own = rng.standard_normal(n), rng.standard_normal((models, 1, n))
    each, seed = rng.standard_normal(shape), rng.standard_normal((models, seeds, 1))
    parts = np.sqrt(0.5) * everyone + np.sqrt(0.5 - luck) * own + np.sqrt(luck) * each
    return np.asarray(parts + moved * seed)


def accuracy(level: float, luck: float = 0.1, moved: float = 0.01) -> Made:
    """Right where the effect stays below a level; `gains` are added to it."""

    def make(rng: np.random.Generator, n: int, seeds: int, gains: Sequence[float]) -> list[Row]:
        z = effects(rng, (len(gains), seeds, n), luck, moved)
        rows = []
        for k, gain in enumerate(gains):
            for s in range(seeds):
                p = said(np.full(n, 0.5), z[k, s] < level + gain)
                halved = of_set(TEST, p, ("accuracy",))["accuracy"]
                rows.append(row(k, s, n, float(p.correct.mean()), halved))
        return rows

    return make


def auroc(rng: np.random.Generator, n: int, seeds: int, gains: Sequence[float]) -> list[Row]:
    """Scores of known and unknown examples one deviation apart; `gains` are added to it."""
    inside, outside = (effects(rng, (len(gains), seeds, n)) for _ in range(2))
    rows = []
    for k, gain in enumerate(gains):
        for s in range(seeds):
            a, b = (1 / (1 + np.exp(-z)) for z in (inside[k, s] + 1 + gain, outside[k, s]))
            p, q = said(a, np.ones(n, bool)), said(b, np.zeros(n, bool))
            halved = auroc_of_sets((TEST, p.confidence), (OUTSIDE, q.confidence))
            rows.append(row(k, s, 2 * n, detection("auroc", "max_p")(p, q), halved))
    return rows


def calibration(kind: str) -> Made:
    """Models of the same ECE that differ in all else; `gains` are added to the gap of the first."""
    shapes: tuple[tuple[float, float], ...] = {
        "none": ((9, 0.6), (3, 1)),
        "opposite": ((5, 1), (5, 1)),
    }[kind]
    gaps = {"none": (0.0, 0.0), "opposite": (0.04, -0.04)}[kind]

    def make(rng: np.random.Generator, n: int, seeds: int, gains: Sequence[float]) -> list[Row]:
        rows, luck = [], rng.random(n)
        for k, gain in enumerate(gains):
            a, b = shapes[k]
            confidence = 0.05 + 0.9 * rng.beta(a, b, n)
            for s in range(seeds):
                mixed = np.where(rng.random(n) < 0.5, luck, rng.random(n))
                c = np.clip(confidence + 0.005 * rng.standard_normal(), 0.05, 0.95)
                p = said(c, mixed < confidence - gaps[k] - gain)
                rows.append(row(k, s, n, METRICS["ece"](p), of_set(TEST, p, ("ece",))["ece"]))
        return rows

    return make


def before(rows: Sequence[Row], labels: Sequence[str], higher: bool) -> bool:
    """The rule of old: the interval over seeds of the best mean overlaps with no other."""
    best, *others = sorted(estimates(rows, labels).values(), key=lambda e: e.mean, reverse=higher)
    edge = best.low if higher else best.high
    ends = [other.high if higher else other.low for other in others]
    assert edge is not None
    return all(end is not None and (edge > end if higher else edge < end) for end in ends)


def fewer(rows: Sequence[Row], count: int) -> list[Row]:
    return [row | {"halves": row["halves"][:count]} for row in rows]


# Name, what is made, examples, gains of the models, and whether higher is better.
Case = tuple[str, Made, int, tuple[float, ...], bool]
SAME: tuple[Case, ...] = (
    ("accuracy .84", accuracy(1.0), 1000, (0, 0), True),
    ("accuracy .84, seeds alike", accuracy(1.0, 0.02, 0), 1000, (0, 0), True),
    ("accuracy .84, seeds unlike", accuracy(1.0, 0.3, 0.1), 1000, (0, 0), True),
    ("accuracy .84", accuracy(1.0), 10_000, (0, 0), True),
    ("accuracy .99", accuracy(2.33), 300, (0, 0), True),
    ("AUROC .76", auroc, 1000, (0, 0), True),
    ("ECE 0, sharp and blunt", calibration("none"), 1000, (0, 0), False),
    ("ECE .04, over- and under-confident", calibration("opposite"), 1000, (0, 0), False),
    ("accuracy .84, five models", accuracy(1.0), 1000, (0, 0, 0, 0, 0), True),
)
APART: tuple[Case, ...] = (
    ("accuracy .84 against .82", accuracy(1.0), 1000, (0, -0.08), True),
    ("accuracy .84 against .80", accuracy(1.0), 1000, (0, -0.153), True),
    ("accuracy .84 against .82", accuracy(1.0), 10_000, (0, -0.08), True),
    ("AUROC .76 against .73", auroc, 1000, (0, -0.133), True),
    ("AUROC .76 against .70", auroc, 1000, (0, -0.258), True),
    ("ECE .04 against 0", calibration("none"), 1000, (0.04, 0), False),
    ("ECE .08 against 0", calibration("none"), 1000, (0.08, 0), False),
)


def share(cases: Sequence[bool]) -> str:
    return f"{100 * np.mean(cases):.1f} %"


def rates(case: Case, seeds: int, times: int) -> list[str]:
    """How often the old rule and ours have a verdict."""
    name, make, n, gains, higher = case
    rng, labels = np.random.default_rng([seeds, n]), [f"{k}" for k in range(len(gains))]
    old, ahead, some = [], [], []
    for _ in range(times if n < 5000 else times // 4):
        rows = make(rng, n, seeds, gains)
        found = verdict(rows, labels, higher)
        assert found is not None
        old.append(before(rows, labels, higher))
        ahead.append(not found.tied)
        some.append(len(found.tied) < len(gains) - 1)
    return [name, f"{n:,}", f"{seeds}", share(old), share(ahead), share(some)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    times, begun = parser.parse_args().repetitions, time.perf_counter()
    for title, cases in (("the same truth", SAME), ("apart", APART)):
        print(f"\n| {title} | examples | seeds | before | clearly ahead | ahead of some |")
        print("|---|---|---|---|---|---|")
        for case in cases:
            for seeds in (3, 5):
                print(f"| {' | '.join(rates(case, seeds, times))} |", flush=True)
    print(f"\nfalse verdicts by the number of halves ({SAME[0][0]}, 1,000 examples, 5 seeds)")
    for count in (10, 25, 50, COUNT):
        rng = np.random.default_rng(0)
        made = (accuracy(1.0)(rng, 1000, 5, (0, 0)) for _ in range(times))
        found = [verdict(fewer(rows, count), ("0", "1"), True) for rows in made]
        print(f"{count:>5}: {share([f is not None and not f.tied for f in found])}")
    print(f"\n{100 * (1 - LEVEL):.0f} % may be false; {time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
