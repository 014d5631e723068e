"""How much can be answered under a promised accuracy: ova beside MAPIE and SGR.

Promise: the accuracy of the answered is at least a, with 95 % certainty. Confidences are
Beta(3, 0.4); calibrated, over-confident (true accuracy c^1.5), tied (rounded to two digits) or with
one in two hundred labels wrong. Printed: mean share answered, and how often the promise broke.
"""

import argparse
import math
import time
import warnings
from collections.abc import Callable

import numpy as np
from mapie.risk_control import BinaryClassificationController
from scipy.special import bdtr
from scipy.stats import beta

from ova.posthoc.threshold import fit_threshold

Floats = np.ndarray
Method = Callable[[Floats, Floats, float], float]  # confidences, right, a -> answer above or at

Q = (np.arange(200_000) + 0.5) / 200_000
S = beta(3, 0.4).ppf(1 - Q)
MODELS = {
    "calibrated": (S, S),
    "over-confident": (S, S**1.5),
    "tied": (np.round(S, 2), S),
    "wrong labels": (S, 0.995 * S),
}
CASES = [(0.95, 300), (0.95, 1000), (0.98, 1000), (0.98, 3000), (0.99, 3000), (0.99, 10_000)]


def ours(c: Floats, right: Floats, a: float) -> float:
    return float(np.nextafter(fit_threshold((c, right), a).value, math.inf))


def mapie(fwer: str) -> Method:
    def method(c: Floats, right: Floats, a: float) -> float:
        controller = BinaryClassificationController(
            lambda x: np.column_stack([1 - x, x]), "precision", a, 0.95, fwer_method=fwer
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says so when no threshold is valid
            controller.calibrate(c, right.astype(int))
        # Every valid threshold is certified, so the lowest answers most.
        valid = np.asarray(controller.valid_predict_params, dtype=float)
        return float(valid.min()) if valid.size else math.inf

    return method


def sgr(c: Floats, right: Floats, a: float) -> float:
    """Geifman and El-Yaniv (2017), algorithm 2: binary search, each bound at delta / log2 n."""
    order = np.argsort(-c)
    c, wrong, n = c[order], np.cumsum(~right[order]), len(c)
    rounds = math.ceil(math.log2(n))
    low, high, best = 1, n, math.inf
    for _ in range(rounds):
        m = math.ceil((low + high) / 2)
        if bdtr(wrong[m - 1], m, 1 - a) <= 0.05 / rounds:
            best, low = min(best, float(c[m - 1])), m
        else:
            high = m
    return best


METHODS: dict[str, Method] = {
    "MAPIE, its default (Holm)": mapie("bonferroni_holm"),
    "MAPIE, fixed sequence": mapie("fixed_sequence"),
    "SGR": sgr,
    "ova": ours,
}


def best_possible(right: Floats, a: float) -> float:
    share = np.arange(1, len(Q) + 1)
    return float(share[np.cumsum(right) / share >= a].max(initial=0)) / len(Q)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=50)
    parser.add_argument("--model", choices=MODELS, action="append", help="only this one")
    asked = parser.parse_args()
    times, names = asked.repetitions, asked.model or list(MODELS)
    spent = dict.fromkeys(METHODS, 0.0)
    print(f"share answered (promise broken), {times} repetitions")
    print(f"{'':28}{'best':>7}" + "".join(f"{name:>27}" for name in METHODS))
    for name in names:
        score, right = MODELS[name]
        for a, n in CASES:
            rng = np.random.default_rng(0)
            rows = rng.integers(len(Q), size=(times, n))
            truth = rng.random((times, n)) < right[rows]
            cells = []
            for method, fit in METHODS.items():
                begun = time.perf_counter()
                found = [fit(score[r], t, a) for r, t in zip(rows, truth, strict=True)]
                spent[method] += time.perf_counter() - begun
                kept = [score >= t for t in found]
                share = np.mean([k.mean() for k in kept])
                broken = np.mean([k.any() and right[k].mean() < a for k in kept])
                cells.append(f"{share:>19.3f} ({broken:.3f})")
            print(f"{name:16}{a:>5} {n:>6}{best_possible(right, a):>7.3f}" + "".join(cells))
    slowest = spent["ova"]
    print(
        "time, in units of ova's: " + ", ".join(f"{m} {s / slowest:.1f}" for m, s in spent.items())
    )


if __name__ == "__main__":
    main()
