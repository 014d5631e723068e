"""How soon a change is found, and how often an alarm is false, beside tests of every week and MAPIE.

2,000 rows carry the promise; the stream has 10,000, four classes of like frequency with scores
N(0, 1), and 97 % of the answers are right where 95 % are promised; every fifth row gets a label at once. After 5,000 rows
something changes. Printed: the share of streams with an alarm where nothing changes, or with one before
the change; then the share of the changes that were found, and the median number of rows it took.

All rates are 5 %: ours of everything together and for good; of MAPIE's two each (OnlineMartingaleTest
is given our scores as its conformity scores, RiskMonitoring the promised share as its threshold); of
the weekly test (Kolmogorov and Smirnov on the scores of each 1,000 rows beside the calibration rows) in
each week, or of all ten weeks together (Bonferroni).
"""

import argparse
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import ks_2samp

from ova.posthoc.monitoring import Monitor

CALIBRATION, ROWS, CHANGE, WEEK, CLASSES = 2000, 10_000, 5000, 1000, 4
RATE, PROMISED, TRUTH, LABELLED = 0.05, 0.95, 0.97, 5  # every fifth row has a label
Rng = np.random.Generator


@dataclass
class Stream:
    """What comes: scores, best guesses, and whether each answer is right."""

    score: np.ndarray
    guess: np.ndarray
    right: np.ndarray


def draw(rng: Rng, n: int) -> Stream:
    return Stream(rng.normal(size=n), rng.integers(CLASSES, size=n), rng.random(n) < TRUTH)


def lower(by: float) -> Callable[[Stream, Rng], None]:
    def change(s: Stream, _: Rng) -> None:
        s.score[CHANGE:] -= by

    return change


def slowly(s: Stream, _: Rng) -> None:
    s.score[CHANGE:] -= np.linspace(0, 1, ROWS - CHANGE)


def one_class(s: Stream, _: Rng) -> None:
    s.score[CHANGE:][s.guess[CHANGE:] == 0] -= 1


def more_of_one(s: Stream, rng: Rng) -> None:
    other = rng.random(ROWS - CHANGE) < 0.2
    s.guess[CHANGE:][other] = 0


def more_wrong(to: float) -> Callable[[Stream, Rng], None]:
    def change(s: Stream, rng: Rng) -> None:
        s.right[CHANGE:] = rng.random(ROWS - CHANGE) < to

    return change


WORLDS: Mapping[str, Callable[[Stream, Rng], None] | None] = {
    "nothing changes": None,
    "scores fall by 0.25": lower(0.25),
    "scores fall by 0.5": lower(0.5),
    "scores fall by 1": lower(1),
    "scores fall slowly by 1": slowly,
    "those of one class fall by 1": one_class,
    "one class comes 1.6 times as often": more_of_one,
    "90 % of the answers are right": more_wrong(0.9),
    "80 % of the answers are right": more_wrong(0.8),
}


def ours(held: Stream, s: Stream, seed: int) -> float:
    monitor = Monitor(
        held.score, held.guess, promised={"accuracy": PROMISED}, false_alarms=RATE, seed=seed
    )
    monitor.update(s.score, s.guess)
    rows = np.arange(0, ROWS, LABELLED)
    monitor.outcomes("accuracy", s.right[rows], rows)
    return min((found.alarm for found in monitor.alarms if found.alarm is not None), default=np.inf)


def weekly(level: float) -> Callable[[Stream, Stream, int], float]:
    def test(held: Stream, s: Stream, _: int) -> float:
        for first in range(0, ROWS, WEEK):
            if ks_2samp(held.score, s.score[first : first + WEEK]).pvalue <= level:
                return first + WEEK - 1
        return np.inf

    return test


def martingale(held: Stream, s: Stream, seed: int) -> float:
    from mapie.exchangeability_testing import OnlineMartingaleTest

    test = OnlineMartingaleTest(
        task="classification", test_level=RATE, warn=False, random_state=seed
    )
    scores = np.concatenate([held.score, s.score])
    for i, score in enumerate(scores):
        p = test.compute_p_value(score, scores[:i])
        test.update_simple_jumper_martingale(p)
        if test.current_martingale_value > test.reject_threshold:
            return max(0, i - CALIBRATION)
    return np.inf


def risk(_: Stream, s: Stream, __: int) -> float:
    from mapie.exchangeability_testing import RiskMonitoring

    # Half of its level is for a threshold that it would fit; ours is given.
    test = RiskMonitoring("accuracy", test_level=2 * RATE, threshold=1 - PROMISED, warn=False)
    y = np.ones(ROWS // LABELLED, int)
    test.update(y, s.right[::LABELLED].astype(int))
    above = np.flatnonzero(test.online_risk_lower_bound_sequence_history > test.threshold)
    return float(above[0]) * LABELLED if len(above) else np.inf


METHODS: Mapping[str, tuple[Callable[[Stream, Stream, int], float], int]] = {
    "ova monitor": (ours, 1),  # of how many streams it sees one
    "weekly, each": (weekly(RATE), 5),
    "weekly, together": (weekly(RATE * WEEK / ROWS), 5),
    "MAPIE, martingale": (martingale, 20),
    "MAPIE, risk": (risk, 5),
}


def cell(alarms: np.ndarray, changed: bool) -> str:
    early = alarms < (CHANGE if changed else ROWS)
    said = f"{early.mean():.1%}".replace("%", " %")
    if not changed:
        return said
    late = alarms[~early] - CHANGE
    if not np.isfinite(late).any():
        return f"{said}; none"
    took = np.median(late)
    rows = f"{took + 1:,.0f}" if np.isfinite(took) else "–"
    return f"{said}; {np.isfinite(late).mean():.0%}, {rows}".replace("%", " %").replace("  ", " ")


def quickness() -> None:
    rng = np.random.default_rng(0)
    monitor = Monitor(rng.normal(size=20_000), rng.integers(10, size=20_000))
    monitor.update(rng.normal(size=100), rng.integers(10, size=100))  # compiles
    s, k = rng.normal(size=1_000_000), rng.integers(10, size=1_000_000)
    begun = time.perf_counter()
    monitor.update(s, k)
    print(f"\n1,000,000 rows of 10 classes beside 20,000: {time.perf_counter() - begun:.1f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=1000, help="without a change")
    parser.add_argument("--changed", type=int, default=200, help="of each change")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| | " + " | ".join(METHODS) + " |\n|---|" + "---|" * len(METHODS))
    for name, change in WORLDS.items():
        streams, cells = asked.changed if change else asked.streams, []
        for method, every in METHODS.values():
            alarms = []
            for seed in range(0, streams, every):
                rng = np.random.default_rng(seed)
                held, s = draw(rng, CALIBRATION), draw(rng, ROWS)
                if change:
                    change(s, rng)
                alarms.append(method(held, s, seed))
            cells.append(cell(np.array(alarms), change is not None))
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    quickness()


if __name__ == "__main__":
    main()
