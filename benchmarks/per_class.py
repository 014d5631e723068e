"""One promise for every class at once: how much is answered, and how often any class breaks it.

Promise: of the inputs answered as a class at least 95 % are right, for every class, with 95 %
certainty. Confidences are Beta(6, 0.4), calibrated but where the world says otherwise. Beside ours:
one threshold for all classes, whose promise is of all together; and a threshold for each class
with delta / K. Printed: share answered, classes that are answered, and how often a class broke it.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.stats import beta

from ova.posthoc.certificates import accuracy_values
from ova.posthoc.per_class import Held, fit_per
from ova.posthoc.threshold import Promise, fit_threshold

A, DELTA = 0.95, 0.05
C = beta(6, 0.4).ppf((np.arange(100_000) + 0.5) / 100_000)


@dataclass(frozen=True)
class World:
    """How often each class is answered, and P(right | confidence, class)."""

    share: np.ndarray
    power: np.ndarray  # right with probability c ** power
    rounded: int = 12  # digits of the confidence


def equal(K: int) -> np.ndarray:
    return np.full(K, 1 / K)


def rare(K: int) -> np.ndarray:
    share = 1 / np.arange(1, K + 1)
    return np.asarray(share / share.sum())


ONE_BAD = np.array([3.0, *[0.2] * 9])
WORLDS = {
    "10 alike": World(equal(10), np.ones(10)),
    "10, one bad": World(equal(10), ONE_BAD),
    "10, half of them easy": World(equal(10), np.repeat([1, 0.05], 5)),
    "10, ever rarer": World(rare(10), np.ones(10)),
    "10, two digits": World(equal(10), np.ones(10), 2),
    "100, ever rarer": World(rare(100), np.ones(100)),
    "10, false by a hair": World(equal(10), np.full(10, math.nan)),  # accuracy 0.9499 everywhere
}
Found = tuple[np.ndarray, np.ndarray]  # value of each class; classes that are promised together
Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, int], Found]


def one_for_all(c: np.ndarray, right: np.ndarray, _: np.ndarray, K: int) -> Found:
    return np.full(K, fit_threshold((c, right), A).value), np.arange(K)


def each_alone(c: np.ndarray, right: np.ndarray, k: np.ndarray, K: int) -> Found:
    found = (accuracy_values(c[k == j], right[k == j], A, DELTA / K) for j in range(K))
    return np.array([values.min(initial=math.inf) for values in found]), np.arange(K)


def ours(c: np.ndarray, right: np.ndarray, k: np.ndarray, K: int, pool: bool = False) -> Found:
    held = Held(c, right, np.zeros(len(c), bool), k)
    found = fit_per(held, Promise(A), range(K), "class", pool=pool)
    together = np.where(np.isin(np.arange(K), found.pooled), K, np.arange(K))
    return found.values(np.arange(K)), together


def with_pool(c: np.ndarray, right: np.ndarray, k: np.ndarray, K: int) -> Found:
    return ours(c, right, k, K, pool=True)


METHODS: dict[str, Fit] = {
    "one for all": one_for_all,
    "each with delta / K": each_alone,
    'per="class"': ours,
    "and pool": with_pool,
}


def chance(world: World, c: np.ndarray, k: np.ndarray | int) -> np.ndarray:
    """P(right | confidence, class)."""
    return np.where(np.isnan(world.power[k]), 0.9499, c ** world.power[k])


def truth(world: World, found: Found) -> tuple[float, int, float]:
    """Share answered, classes answered, and the least accuracy of a class, or of a pool as one."""
    values, together = found
    worst, total, count = 1.0, 0.0, 0
    c = np.round(C, world.rounded)
    above = np.searchsorted(c, values, side="right")  # so many are not answered
    for part in np.unique(together):
        mine = np.flatnonzero((together == part) & (above < len(C)))
        if len(mine):
            weight = world.share[mine] * (1 - above[mine] / len(C))
            right = [chance(world, C[above[j] :], int(j)).mean() for j in mine]
            worst = min(worst, float(np.average(right, weights=weight)))
            total, count = total + weight.sum(), count + len(mine)
    return total, count, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=300)
    parser.add_argument("--rows", type=int, nargs="*", default=[3000, 10_000])
    asked = parser.parse_args()
    print("| world | rows | " + " | ".join(METHODS) + " |")
    print("|---|---|" + "---|" * len(METHODS))
    for name, world in WORLDS.items():
        for n in asked.rows:
            cells = []
            for fit in METHODS.values():
                rng, found = np.random.default_rng(0), []
                for _ in range(asked.repetitions):
                    k = rng.choice(len(world.share), n, p=world.share)
                    c = rng.beta(6, 0.4, n)
                    right = rng.random(n) < chance(world, c, k)
                    values = fit(np.round(c, world.rounded), right, k, len(world.share))
                    found.append(truth(world, values))
                share, count, worst = (np.array(x) for x in zip(*found, strict=True))
                cells.append(f"{share.mean():.3f}, {count.mean():.1f}, {(worst < A).mean():.1%}")
            print(f"| {name} | {n:,} | " + " | ".join(cells).replace("%", " %") + " |", flush=True)


if __name__ == "__main__":
    main()
