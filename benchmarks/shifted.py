"""How often a promise for shifted inputs is false, and how often one that is true can be had.

Held-out inputs x are uniform, new ones have density proportional to exp(2 x); an answer is right with
probability 0.97 - 0.2 x, whatever the confidence, so that the truth for new inputs is 0.839. Promised is
0.0001 more than that (every promise is false; 5 % may be made), and 0.02 less (every promise is true).
"""

import argparse
import math
from collections.abc import Callable, Mapping

import numpy as np

from ova.errors import BadInput
from ova.posthoc.shifted import fit_like, fit_shifted
from ova.posthoc.threshold import fit_threshold

ROWS, SAMPLE, TILT = 3000, 3000, 2.0
MEAN = (math.exp(TILT) * (TILT - 1) + 1) / (TILT * math.expm1(TILT))  # of new inputs
TRUTH = 0.97 - 0.2 * MEAN
Rng = np.random.Generator
Case = tuple[np.ndarray, tuple[np.ndarray, np.ndarray], Rng]  # x, (confidence, right)


def drawn(rng: Rng) -> Case:
    x = rng.random(ROWS)
    return x, (rng.random(ROWS), rng.random(ROWS) < 0.97 - 0.2 * x), rng


def new_inputs(rng: Rng) -> np.ndarray:
    return np.asarray(np.log1p(rng.random(SAMPLE) * math.expm1(TILT)) / TILT)


def without(case: Case, a: float) -> bool:
    return fit_threshold(case[1], a).promised


def repeated(case: Case, a: float) -> bool:
    """As many rows as before, drawn by their weights with repetition, as if they were new ones."""
    x, (c, right), rng = case
    w = np.exp(TILT * x)
    rows = rng.choice(ROWS, ROWS, p=w / w.sum())
    return fit_threshold((c[rows], right[rows]), a).promised


def known(case: Case, a: float) -> bool:
    x, examples, rng = case
    seed = int(rng.integers(2**31))
    return fit_shifted(examples, np.exp(TILT * x), a, bound=math.exp(TILT), seed=seed).promised


def estimated(case: Case, a: float) -> bool:
    x, examples, rng = case
    return fit_like(examples, (x, new_inputs(rng)), a, seed=int(rng.integers(2**31))).promised


def of_nothing(case: Case, a: float) -> bool:
    """By a feature in which the new inputs are like the old ones."""
    _, examples, rng = case
    noise = rng.normal(size=ROWS), rng.normal(size=SAMPLE)
    return fit_like(examples, noise, a, seed=int(rng.integers(2**31))).promised


METHODS: Mapping[str, Callable[[Case, float], bool]] = {
    "no weights": without,
    "rows drawn again by known weights": repeated,
    "`fit_shifted`, known weights": known,
    "`fit_like`, an unlabelled sample": estimated,
    "`fit_like`, by a feature that does not tell": of_nothing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=500)
    times = parser.parse_args().times
    print("| | false promises | true promises |\n|---|---|---|")
    for name, method in METHODS.items():
        shares = []
        for a in (TRUTH + 1e-4, TRUTH - 0.02):
            made = 0
            for seed in range(times):
                try:
                    made += method(drawn(np.random.default_rng(seed)), a)
                except BadInput:
                    continue
            shares.append(f"{100 * made / times:.1f} %")
        print(f"| {name} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    main()
