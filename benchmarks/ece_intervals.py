"""How often an interval of the expected calibration error holds the true one.

    python benchmarks/ece_intervals.py [--repetitions 1000]

Models whose true chance of being right is known at each confidence, from calibrated ones to ones
that are right in .99 of cases and say .999. The truth is the ECE of the same bins over all there
could be. Beside ours the percentile bootstrap, which was used before, at a tenth of the repetitions.
"""

import argparse
import time
from collections.abc import Callable
from functools import cache

import numpy as np

from ova.metrics import METRICS, Draws, bootstrap
from ova.metrics.calibration import BINS
from ova.predictions import Predictions

Floats = np.ndarray
Model = tuple[Callable[[np.random.Generator, int], Floats], Callable[[Floats], Floats]]


def beta(a: float, b: float) -> Callable[[np.random.Generator, int], Floats]:
    return lambda rng, n: rng.beta(a, b, n)


# How confidences are drawn, and the chance of being right at each.
MODELS: dict[str, Model] = {
    "calibrated": (beta(3, 0.4), lambda c: c),
    "calibrated, blunt": (beta(2, 1.5), lambda c: c),
    "calibrated, sharp": (beta(9, 0.6), lambda c: c),
    "over-confident by .03": (beta(3, 0.4), lambda c: np.clip(c - 0.03, 0, 1)),
    "over-confident, right c^1.6": (beta(3, 0.4), lambda c: c**1.6),
    "under-confident": (beta(3, 0.4), lambda c: np.clip(c + 0.04, 0, 0.999)),
    "over and under by turns": (beta(3, 0.4), lambda c: np.clip(c + 0.04 * np.sin(12 * c), 0, 1)),
    "says .999, right .99": (lambda rng, n: 1 - rng.beta(0.5, 400, n), lambda c: np.full_like(c, 0.99)),
}  # fmt: skip
SIZES = (300, 1000, 3000, 10_000)
RULES = {"equal-width": "ece", "equal-mass": "ece_equal_mass"}


@cache
def truth(model: Model, rule: str) -> float:
    """The ECE of a million examples with the chance itself in place of right or wrong."""
    draw, right = model
    confidence = np.sort(draw(np.random.default_rng(0), 1_000_000))
    if rule == "equal-mass":
        at = np.arange(len(confidence)) * BINS // len(confidence)
    else:
        at = np.minimum((confidence * BINS).astype(int), BINS - 1)
    gaps = np.bincount(at, right(confidence) - confidence)
    return float(np.abs(gaps).sum() / len(confidence))


def said(model: Model, rng: np.random.Generator, n: int) -> Predictions:
    draw, right = model
    confidence = draw(rng, n)
    wrong = rng.random(n) >= right(confidence)
    return Predictions(
        id=np.arange(n), target=np.zeros(n, np.int32), prediction=wrong.astype(np.int32),
        confidence=confidence, classes=2, normalised=True,
    )  # fmt: skip


def held(model: Model, rule: str, n: int, times: int) -> tuple[float, Floats]:
    """How often the interval holds the truth, and the mean of value, low and high."""
    rng, goal, metric = np.random.default_rng(n), truth(model, rule), METRICS[RULES[rule]]
    found = [bootstrap(metric, said(model, rng, n)) for _ in range(times)]
    ends = np.array([(i.value, i.low, i.high) for i in found if i is not None], float)
    return float(((ends[:, 1] <= goal) & (goal <= ends[:, 2])).mean()), ends.mean(axis=0)


def held_before(model: Model, n: int, times: int) -> float:
    """The same of percentiles over redrawn examples."""
    rng, goal = np.random.default_rng(n), truth(model, "equal-width")
    measure, draws = METRICS["ece"].measure, Draws(count=100)
    found = [bootstrap(measure, said(model, rng, n), draws=draws) for _ in range(times)]
    return float(np.mean([i is not None and (i.low or 0) <= goal <= (i.high or 0) for i in found]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    times, begun = parser.parse_args().repetitions, time.perf_counter()
    print(
        "| model | examples | true ECE | seen, mean | interval, mean | bootstrap held | ours held | equal-mass |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, model in MODELS.items():
        for n in SIZES:
            share, (value, low, high) = held(model, "equal-width", n, times)
            mass, _ = held(model, "equal-mass", n, times)
            old = held_before(model, n, max(1, times // 10 if n < 5000 else times // 40))
            cells = [name, f"{n:,}", f"{truth(model, 'equal-width'):.3f}", f"{value:.3f}"]
            cells += [f"{low:.3f} to {high:.3f}", f"{100 * old:.0f} %"]
            print(
                f"| {' | '.join([*cells, f'{100 * share:.1f} %', f'{100 * mass:.1f} %'])} |",
                flush=True,
            )
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
