"""How often a promise is false: with inputs that repeat, rare classes, and a promise chosen by itself.

Every world here is known, so that the truth can be counted. 5 % of promises may be false. "Before"
is what earlier versions did: copies counted as examples, held-out rows of classes without a
row to train on moved into training, delta spent twice on a promise that nobody asked for.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from ova.modelfolder.promise import COVERAGE, choose, target
from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.predictions import NONE, Predictions
from ova.userdata.split import HELD, split

Rng = np.random.Generator
ROWS = 300  # that carry a promise where inputs repeat
KNOWN = 0.979  # accuracy on classes that were trained
RARE, MASS, TOTAL = 3000, 0.15, 7000  # rare classes, their share of the inputs, rows of the user


Rule = Callable[[np.ndarray, int], tuple[np.ndarray, np.ndarray]]


def share(cases: Sequence[bool]) -> str:
    return f"{100 * np.mean(cases):.1f} %"


def repeated(times: int) -> None:
    """Truth .93, promised .95, a confidence that knows nothing."""
    worlds: dict[str, Callable[[Rng], tuple[np.ndarray, ...]]] = {
        "single rows": lambda rng: members(rng, 1, np.inf),
        "5 copies of each": lambda rng: members(rng, 5, 0),
        "10 copies of each": lambda rng: members(rng, 10, 0),
        "10 photos of each thing": lambda rng: members(rng, 10, 0.3),
    }
    print(f"\n{ROWS} held-out rows, truth .93, promised .95: false promises\n")
    print("| held-out rows | independent | before | now |\n|---|---|---|---|")
    for name, world in worlds.items():
        rng, before, now = np.random.default_rng(0), [], []
        for _ in range(times):
            c, right, group = world(rng)
            before.append(fit_threshold((c, right), 0.95).promised)
            now.append(fit_threshold((c, right), 0.95, groups=group).promised)
        print(f"| {name} | {len(set(group))} | {share(before)} | {share(now)} |")


def members(rng: Rng, size: int, alike: float) -> tuple[np.ndarray, ...]:
    """Groups of some rows: copies (0), or rows with the accuracy of their group, Beta(.93 s, .07 s)."""
    group = np.repeat(np.arange(ROWS // size), size)
    if alike == 0:
        return rng.random(ROWS)[group], (rng.random(ROWS) < 0.93)[group], group
    rate = rng.beta(0.93 * alike, 0.07 * alike, ROWS) if alike < np.inf else np.full(ROWS, 0.93)
    return rng.random(ROWS), rng.random(ROWS) < rate[group], group


def rare(times: int) -> None:
    """A model that is right in 97.9 % of the cases where its class was trained, and in no other."""
    print(f"\n{TOTAL} rows, 15 % of the mass in {RARE} rare classes: what is promised\n")
    print("| rule | promised | seen | truth | given | false |\n|---|---|---|---|---|---|")
    rules = {"before": moved, "kept, in proportion": in_proportion, "now": by_lot}
    for a in (0.95, 0.865):
        for name, rule in rules.items():
            rng = np.random.default_rng(0)
            seen, truth, given, false = zip(
                *(rare_case(rng, rule, a) for _ in range(times)), strict=True
            )
            means = f"{np.mean(seen):.3f} | {np.mean(truth):.3f}"
            print(f"| {name} | {a} | {means} | {share(given)} | {share(false)} |")


def rare_case(rng: Rng, rule: Rule, a: float) -> tuple[float, float, bool, bool]:
    """Accuracy on the held-out rows, the truth, whether a promise was given, and a false one."""
    y = np.where(rng.random(TOTAL) < MASS, rng.integers(RARE, size=TOTAL), RARE)
    trained, held = rule(y, int(rng.integers(2**31)))
    known = np.isin(held, trained)
    right = (rng.random(len(held)) < KNOWN) & known
    found = fit_threshold((rng.random(len(held)), right), a)  # the confidence knows nothing
    unknown = MASS * (1 - len(np.setdiff1d(trained, [RARE])) / RARE)
    truth = KNOWN * (1 - unknown)
    return float(right.mean()), truth, found.promised, found.promised and truth < a


def by_lot(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Classes to train and classes of the rows that carry the promise."""
    parts = split(range(len(y)), seed, list(HELD))
    return np.unique(y[parts["train"]]), y[parts["calibration"]]


def moved(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The first held-out row of a class without one is trained on instead."""
    parts = split(range(len(y)), seed, list(HELD))
    known, held = y[parts["train"] + parts["validation"]], y[parts["calibration"]]
    _, first = np.unique(held, return_index=True)
    return np.unique(y), np.delete(held, first[~np.isin(held[first], known)])


def in_proportion(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every class divided as all are: row i goes where the fraction of u + i g falls."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    order = order[np.argsort(y[order], kind="stable")]
    at = (rng.random() + np.arange(len(y)) * (5**0.5 - 1) / 2) % 1
    return np.unique(y[order[at < 0.6]]), y[order[(at >= 0.7) & (at < 0.85)]]


def chosen(times: int) -> None:
    """Truth just under .8 everywhere; the validation rows, which chose the epoch, look better."""
    print("\n3000 held-out rows, truth just under .8, nothing asked for: false promises\n")
    print("| | accuracy | coverage | together |\n|---|---|---|---|")
    for name, fit in {"before": twice, "now": lambda s, r: choose(s, r, Promise())}.items():
        rng, wrong = np.random.default_rng(0), []
        for _ in range(times):
            c = rng.random(2000)
            seen = said(c, rng.random(2000) < np.where(c > 0.15, 0.88, 0.2))
            found = fit(seen, said(rng.random(3000), rng.random(3000) < 0.79999))
            accuracy = found.promise.accuracy is not None
            covered = 1 - max(found.value, 0)
            wrong.append((accuracy, found.promise.coverage is not None and covered < COVERAGE))
        columns = [[w[0] for w in wrong], [w[1] for w in wrong], [any(w) for w in wrong]]
        print(f"| {name} | {' | '.join(map(share, columns))} |")


def twice(seen: Predictions, rows: Predictions) -> Threshold:
    """All of delta for an accuracy, and all of it again for a coverage."""
    accuracy = target(seen, len(rows), 0.95)
    many = seen.take(np.repeat(np.arange(len(seen)), round(len(rows) / len(seen))))
    easy = fit_threshold(many, accuracy).answered >= COVERAGE
    found = fit_threshold(rows, accuracy, coverage=COVERAGE if easy else None)
    return found if found.promised else fit_threshold(rows, coverage=COVERAGE)


def said(c: np.ndarray, right: np.ndarray) -> Predictions:
    return Predictions(
        id=np.arange(len(c)),
        target=np.where(right, 0, NONE).astype(np.int32),
        prediction=np.zeros(len(c), np.int32),
        confidence=c,
        classes=2,
        normalised=False,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=2000)
    times = parser.parse_args().times
    repeated(times)
    rare(times // 4)
    chosen(times)


if __name__ == "__main__":
    main()
