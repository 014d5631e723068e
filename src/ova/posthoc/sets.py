"""Sets of classes that hold the right one as often as promised: none of them, one, or these two.

The theorem behind each method, and its proof, are in docs/sets.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ova.errors import BadInput, pick
from ova.posthoc.certificates import Floats, Truths
from ova.predictions.columns import NONE, Predictions, check_labels, matrix, whole

Said = Predictions | ArrayLike  # predictions with their probabilities, or these alone


def own(p: Floats, _: Floats, __: "Sets") -> Floats:
    """The probability of the class itself, which is all that one of K yes-or-no answers says."""
    return -p


def cumulated(p: Floats, u: Floats, _: "Sets") -> Floats:
    """The mass of all classes before this one, the likeliest first, and a random share of its own."""
    order = np.argsort(-p, axis=1, kind="stable")
    mass = np.take_along_axis(p, order, axis=1)
    s = np.empty_like(p)
    np.put_along_axis(s, order, np.cumsum(mass, axis=1) - (1 - u[:, None]) * mass, axis=1)
    return s


def regularised(p: Floats, u: Floats, how: "Sets") -> Floats:
    """That mass, and a penalty for each class beyond the first few, which keeps sets small."""
    rank = np.argsort(np.argsort(-p, axis=1, kind="stable"), axis=1) + 1
    return cumulated(p, u, how) + how.penalty * np.maximum(0, rank - how.free)


# How little a class is like an input: it is in the set where this is at most the limit.
STRANGENESS: Mapping[str, Callable[[Floats, Floats, "Sets"], Floats]] = {
    "class": own,  # a limit for each class; the others have one for all
    "lac": own,
    "aps": cumulated,
    "raps": regularised,
}


@dataclass(frozen=True)
class Sets:
    """Which classes an input may belong to; the right one is among them as often as promised.

    >>> p = np.repeat(np.linspace(0.05, 0.95, 39)[:, None], 2, axis=1)
    >>> sets = fit_sets((p, np.arange(39) % 2), coverage=0.9)
    >>> print(sets)
    sets by class: P(y in the set | y = k) >= 0.9 for every class k (39 examples)
    >>> sets.lists([[0.9, 0.9], [0.9, 0.01], [0.01, 0.01]], names=["cat", "dog"])
    [['cat', 'dog'], ['cat'], []]
    """

    method: str
    coverage: float
    limits: tuple[float, ...]  # of each class, or one for all; infinite where nothing is refused
    n: tuple[int, ...]  # examples of each class
    seed: int = 0
    penalty: float = 0.01  # of RAPS, for each class beyond
    free: int = 5  # so many

    @property
    def always(self) -> tuple[int, ...]:
        """The classes in every set, because no limit can be promised with so few examples."""
        limits = self.limits if self.method == "class" else self.limits * len(self.n)
        return tuple(k for k, limit in enumerate(limits) if limit == math.inf)

    def predict(self, predictions: Said, seed: int = 0) -> Truths:
        """Which classes are in the set of each input, N x K; another `seed` is another lot of APS."""
        p = probabilities(predictions)
        if p.shape[1] != len(self.n):
            raise BadInput(f"the sets are of {len(self.n)} classes, these are {p.shape[1]}")
        s = strangeness(self, p, np.random.default_rng([self.seed, 1, seed]))
        return np.asarray(s <= np.array(self.limits))

    def lists(
        self, predictions: Said, names: Sequence[Any] | None = None, seed: int = 0
    ) -> list[list[Any]]:
        """The classes in the set of each input, by number or name; an empty list is none of them."""
        called = range(len(self.n)) if names is None else names
        return [
            [called[k] for k in np.flatnonzero(row).tolist()]
            for row in self.predict(predictions, seed)
        ]

    def __str__(self) -> str:
        each = ", ".join(map(str, self.always))
        need = fewest(self.coverage)
        few = f"; always in the set, with fewer than {need} examples: {each}" if each else ""
        seen = f"{sum(self.n)} examples"
        if self.method == "class":
            what = f"sets by class: P(y in the set | y = k) >= {self.coverage:g} for every class k"
        else:
            what = f"sets by {self.method}: P(y in the set) >= {self.coverage:g}"
        return f"{what} ({seen}){few}"

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON, which has no infinity."""
        limits = [x if math.isfinite(x) else str(x) for x in self.limits]
        return asdict(self) | {"limits": limits, "n": list(self.n)}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> "Sets":
        """What `to_json` wrote."""
        try:
            method, coverage, seed = str(row["method"]), float(row["coverage"]), int(row["seed"])
            limits, n = tuple(map(float, row["limits"])), tuple(map(int, row["n"]))
            wanted = len(n) if method == "class" else 1
            if method not in STRANGENESS or len(limits) != wanted or np.isnan(limits).any():
                raise ValueError("limits that do not fit the method")
            if not 0 < coverage < 1 or seed < 0:
                raise ValueError("a coverage or a seed that cannot be")
            return Sets(method, coverage, limits, n, seed, float(row["penalty"]), int(row["free"]))
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"not sets written by ova: {error}") from error


def fit_sets(
    predictions: Predictions | tuple[ArrayLike, ArrayLike],
    coverage: float = 0.95,
    method: str = "class",
    *,
    seed: int = 0,
    penalty: float = 0.01,
    free: int = 5,
) -> Sets:
    """Limits for which the set of a new input holds its class with probability `coverage`.

    `class` keeps it for every class: P(y in set | y = k) >= coverage, from one-vs-all's K answers or
    any probabilities; inputs of none of the classes tend to get the empty set. `lac`, `aps` and
    `raps` keep it over all classes together. `predictions` is a Predictions with its probabilities
    (`keep_probs=True`) or a pair (probabilities, target), held out and independent; rows of none of
    the classes are left out. A class with too few rows is in every set, and in `always`.

    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(600, 4)) + 4 * np.eye(4)[np.arange(600) % 4]
    >>> sets = fit_sets((1 / (1 + np.exp(-z)), np.arange(600) % 4), coverage=0.9)
    >>> sets.predict([[0.99, 0.2, 0.3, 0.1], [0.5, 0.5, 0.5, 0.5]]).astype(int)
    array([[1, 0, 0, 0],
           [0, 0, 0, 0]])
    """
    pick(STRANGENESS, method, "method of sets")
    if not 0 < coverage < 1:
        raise BadInput(f"coverage must lie strictly between 0 and 1, not {coverage}")
    pair = predictions if isinstance(predictions, tuple) else (predictions, predictions.target)
    p, y = probabilities(pair[0]), whole(pair[1], "target", np.dtype(np.int32))
    if y.shape != (len(p),):
        raise BadInput(
            f"{len(p)} rows of probabilities but {y.size} targets; there must be one each"
        )
    check_labels(y, np.arange(len(y)), p.shape[1], "target", NONE)
    n = tuple(np.bincount(y[y != NONE], minlength=p.shape[1]).tolist())
    how = Sets(method, float(coverage), (), n, seed, penalty, free)
    s = strangeness(how, p, np.random.default_rng([seed, 0]))
    known = np.flatnonzero(y != NONE)
    of, its = y[known], s[known, y[known]]
    parts = [its[of == k] for k in range(len(n))] if method == "class" else [its]
    limits = tuple(limit(part, how.coverage) for part in parts)
    return Sets(method, how.coverage, limits, n, seed, penalty, free)


def strangeness(how: Sets, p: Floats, rng: np.random.Generator) -> Floats:
    """How little each class is like each input; APS and RAPS draw a lot for each input."""
    return STRANGENESS[how.method](p, rng.random(len(p)), how)


def limit(s: Floats, coverage: float) -> float:
    """The ceil((n + 1) coverage)-th smallest; infinity where there are not so many.

    >>> limit(np.arange(9.0), 0.9), limit(np.arange(8.0), 0.9)
    (8.0, inf)
    """
    place = math.ceil(exactly(coverage) * (len(s) + 1))
    return float(np.partition(s, place - 1)[place - 1]) if place <= len(s) else math.inf


def fewest(coverage: float) -> int:
    """The fewest examples of a class with which anything can be refused.

    >>> fewest(0.9), fewest(0.95)
    (9, 19)
    """
    return math.ceil(1 / (1 - exactly(coverage))) - 1


def exactly(share: float) -> Fraction:
    """The share as it was written: 10 (1 - 0.9) is less than 1 in floating point."""
    return Fraction(repr(float(share)))


def probabilities(said: Said) -> NDArray[np.float64]:
    """The N x K probabilities of predictions, or a checked matrix of them."""
    if isinstance(said, Predictions):
        if said.probs is None:
            raise BadInput(
                "these predictions have no probabilities; make them with keep_probs=True"
            )
        said = said.probs
    p = matrix(said, "probabilities").astype(np.float64)
    bad = ~((p >= 0) & (p <= 1)).all(axis=1)
    if bad.any():
        raise BadInput(f"row {int(bad.argmax())}: a probability is NaN or outside [0, 1]")
    return p
