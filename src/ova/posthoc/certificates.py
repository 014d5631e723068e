"""Exact binomial tests: which confidence thresholds n examples can certify, and how many it takes.

Each function is one lemma of docs/threshold.md. Confidences are S, errors W, levels delta.
"""

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Truths = NDArray[np.bool_]
Walks = list[
    tuple[int, Counts]
]  # of each the first count, and how many examples so many errors need


def accuracy_values(c: Floats, right: Truths, a: float, delta: float) -> Floats:
    """All values t, highest first, for which P(right | S > t) >= a is certified, all at once.

    Two walks share delta. The first starts near the top, where the model is surest; the second, on
    a tenth of delta, starts at half of the examples and saves a model with wrong labels among its
    most confident answers.
    """
    return passed(c, right, starts(len(c), a, delta))


def passed(c: Floats, right: Truths, walks: Walks) -> Floats:
    """All values t, highest first, that one of the walks certifies."""
    # Ties are put in an order that knows nothing of the labels, even when the rows are sorted.
    rows = np.random.default_rng(0).permutation(len(c))
    rows = rows[np.argsort(-c[rows], kind="stable")]
    c, wrong = c[rows], np.cumsum(~right[rows], dtype=np.int64)
    counts = [walk(c, wrong, first, needed) for first, needed in walks]
    m = np.unique(np.concatenate([*counts, np.empty(0, np.int64)]))
    values: Floats = np.append(c, -math.inf)[m]
    return values


def walk(c: Floats, wrong: Counts, first: int, needed: Counts) -> Counts:
    """The numbers m >= first of most confident examples that pass, up to the first that fails.

    Of the m most confident, E_m are wrong; m passes if m >= needed(E_m), the exact binomial test.
    Tested are `first` and every m after it that splits no group of ties, for which the m are those
    strictly above the (m+1)-th confidence.
    """
    n = len(c)
    ends = np.append(np.flatnonzero(c[1:] < c[:-1]) + 1, n)
    m = np.append(first, ends[ends > first])
    forgiven = np.append(needed, np.full(wrong[-1] + 1, n + 1))  # so many errors need more than n
    failed = forgiven[wrong[m - 1]] > m
    passed: Counts = m[: int(failed.argmax())] if failed.any() else m
    return passed[np.isin(passed, ends)]


def starts(n: int, a: float, delta: float) -> Walks:
    """First count and table of each walk, fixed by n, a and delta alone.

    The first walk starts with as many errors forgiven as an eighth of the examples allows, one at
    least if that takes no more than half of them, else none. The second needs room for two errors.
    """
    second = needed_table(n, a, 0.1 * delta)
    half = int(np.searchsorted(second, n / 2, side="right")) - 1
    needed = needed_table(n, a, 0.9 * delta if half >= 2 else delta)
    if not len(needed):
        return []
    eighth = int(np.searchsorted(needed, n / 8, side="right")) - 1
    one = int(len(needed) > 1 and needed[1] <= n / 2)
    first = [(int(needed[max(eighth, one)]), needed)]
    return [*first, (int(second[half]), second)] if half >= 2 else first


def raised(n: int, a: float, entry: float, level: float) -> Walks:
    """The walks of a level `entry`, which begin where they did, with the tests of a higher level."""
    begun = starts(n, a, entry)
    shares = (0.9, 0.1) if len(begun) == 2 else (1.0,)
    return [(s, needed_table(n, a, share * level)) for (s, _), share in zip(begun, shares)]  # noqa: B905


def coverage_value(c: Floats, share: float, delta: float) -> float:
    """The highest t with P(confidence > t) >= share, by Wilks' tolerance limit.

    P(S >= k-th largest) is at least Beta(k, n - k + 1) in distribution, whatever the ties.
    """
    n = len(c)
    k = int(np.searchsorted(bdtr(np.arange(n), n, share), 1 - delta)) + 1
    lower = c[c < c[k - 1]] if k <= n else c[:0]
    return float(lower[0]) if len(lower) else -math.inf


def leak_value(outside: Floats, share: float, delta: float) -> float:
    """The lowest t with P(confidence > t | no class) <= share, by the same limit from above."""
    n = len(outside)
    m = int(np.searchsorted(bdtr(np.arange(n), n, share), delta, side="right")) - 1
    return float(outside[m]) if m >= 0 else math.inf


def examples_needed(errors: int, a: float, delta: float) -> int:
    """The fewest answers among which so many errors still prove an accuracy of a.

    min m with P(Binomial(m, 1 - a) <= errors) <= delta.

    >>> [examples_needed(errors, 0.99, 0.05) for errors in range(4)]
    [299, 473, 628, 773]
    """
    high = errors + 1
    while bdtr(errors, high, 1 - a) > delta:
        high *= 2
    return int(smallest(np.array([errors]), high, 1 - a, delta)[0])


@lru_cache(maxsize=64)
def needed_table(n: int, a: float, delta: float) -> Counts:
    """`examples_needed` for 0, 1, 2, ... errors, as far as n examples go."""
    possible = np.arange(n)
    errors = possible[: int(np.searchsorted(bdtr(possible, n, 1 - a), delta, side="right"))]
    table = smallest(errors, n, 1 - a, delta)
    table.flags.writeable = False
    return table


def smallest(errors: Counts, high: int, alpha: float, delta: float) -> Counts:
    """By bisection, the smallest m <= high with P(Binomial(m, alpha) <= errors) <= delta."""
    low, top = errors.copy(), np.full_like(errors, high)  # low fails: at m = errors the sum is 1
    while (top - low > 1).any():
        middle = (low + top) // 2
        passes = bdtr(errors, middle, alpha) <= delta
        low, top = np.where(passes, low, middle), np.where(passes, middle, top)
    return top


def why_not_accurate(
    c: Floats, right: Truths, a: float, delta: float, walks: Walks | None = None
) -> str:
    """Say how many examples would be needed, or that no number would do; `walks` is what failed."""
    n, least = len(c), examples_needed(0, a, delta)
    if n < least:
        return f"cannot be promised with {n} examples, {least} would be needed even if every answer were right"
    m, hits = best_count(c, right, a)
    rate = cautious(m, hits)
    if rate <= a:
        return f"cannot be promised with {n} examples: of the {m} most confident {hits} are right"
    guess = math.ceil(proving(rate, a, delta) * n / m)
    if guess > n:
        return f"cannot be promised with {n} examples, about {guess} would be needed at the accuracy seen"
    # Enough on the whole, were it not for errors where the model is surest.
    first, needed = (walks or starts(n, a, delta))[0]
    wrong = int((~right[np.argsort(-c, kind="stable")[:first]]).sum())
    most = int(np.searchsorted(needed, first, side="right")) - 1
    return (
        f"cannot be promised with {n} examples: of the {first} most confident {wrong} are wrong "
        f"and {most} may be; with more examples more may"
    )


def best_count(c: Floats, right: Truths, a: float) -> tuple[int, int]:
    """The number of most confident examples that would prove a soonest, and the right of them."""
    m = np.unique(np.geomspace(min(20, len(c)), len(c), 50).astype(int))
    hits = np.cumsum(right[np.argsort(-c, kind="stable")])[m - 1]
    gain = cautious(m, hits) - a
    best = int(np.where(gain > 0, gain**2 * m, gain).argmax())
    return int(m[best]), int(hits[best])


def cautious(m: Any, hits: Any) -> Any:
    """An accuracy by Laplace's rule, because a short run of luck proves nothing."""
    return (hits + 1) / (m + 2)


def proving(rate: float, a: float, delta: float) -> int:
    """About how many answers of this accuracy it takes to prove a, to 5 %."""
    m = examples_needed(0, a, delta)
    while bdtr(math.floor(m * (1 - rate)), m, 1 - a) > delta and m < 10**9:
        m = math.ceil(m * 1.05)
    return m
