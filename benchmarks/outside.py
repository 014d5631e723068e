"""Which of a batch of inputs belong to no class: how many of those named are wrong, and how many are found.

Scores of inputs of the classes are N(0, 1), of others N(-3, 1). Printed: the mean share of those
named that are wrong, for which 10 % are promised, and the share found of those that belong to none. Beside
ours: every input below the tenth of the held-out scores, and Benjamini and Hochberg by p-values
that have forgotten the 1 +, so that one beyond all held-out scores has p = 0.
"""

import argparse
from collections.abc import Callable

import numpy as np

import ova

FDR = 0.1
CASES = [  # held out, new, of these outside, digits of the scores
    (200, 100, 0, 9),
    (200, 100, 10, 9),
    (1000, 100, 10, 9),
    (1000, 100, 10, 0),
    (1000, 1000, 10, 9),
    (1000, 1000, 100, 9),
    (1000, 1000, 500, 9),
    (100, 1000, 100, 9),
    (20, 1000, 50, 9),
]
Method = Callable[[np.ndarray, np.ndarray], np.ndarray]


def ours(new: np.ndarray, held: np.ndarray) -> np.ndarray:
    return ova.outside(new, held, FDR).named


def each(new: np.ndarray, held: np.ndarray) -> np.ndarray:
    return np.asarray(new < np.quantile(held, FDR))


def without_one(new: np.ndarray, held: np.ndarray) -> np.ndarray:
    p = np.searchsorted(np.sort(held), new, side="right") / len(held)
    passed = np.flatnonzero(np.sort(p) <= FDR * np.arange(1, len(p) + 1) / len(p))
    return np.asarray(p <= (np.sort(p)[passed[-1]] if len(passed) else -1))


METHODS: dict[str, Method] = {"the lowest tenth": each, "no 1 +": without_one, "ova.outside": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=4000)
    times = parser.parse_args().repetitions
    print("| held out | new | of them outside | " + " | ".join(METHODS) + " |")
    print("|---|---|---|" + "---|" * len(METHODS))
    for n, N, far, digits in CASES:
        rng, found = np.random.default_rng(0), np.zeros((times, len(METHODS), 2))
        for k in range(times):
            held = np.round(rng.normal(size=n), digits)
            new = np.round(rng.normal(size=N) - 3 * (np.arange(N) < far), digits)
            for m, method in enumerate(METHODS.values()):
                named = method(new, held)
                wrong = named[far:].sum() / max(1, named.sum())
                found[k, m] = wrong, named[:far].mean() if far else 0
        cells = [f"{wrong:.1%}, {seen:.1%}".replace("%", " %") for wrong, seen in found.mean(0)]
        tied = " (whole numbers)" if digits == 0 else ""
        print(f"| {n:,}{tied} | {N:,} | {far} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
