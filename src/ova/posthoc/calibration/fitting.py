"""Convex fits of a few parameters in float64: logistic regression with bounds, and one temperature."""

from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from ova.errors import BadInput
from ova.predictions.columns import Array

Floats = NDArray[np.float64]

FLOOR = 1e-3  # least slope per standard deviation of a score: more confidence never means less
HOTTEST = 1e3  # temperatures stay within 1/HOTTEST..HOTTEST
CELLS = 1 << 20  # of a matrix that is worked on at a time
STEPS = 100


def smoothed(right: Array) -> Floats:
    """Targets a little inside 0 and 1, so that no fit runs away when scores separate the answers.

    (N+ + 1) / (N+ + 2) for right, 1 / (N- + 2) for wrong answers (Platt, 1999).

    >>> smoothed(np.array([True, True, False]))
    array([0.75      , 0.75      , 0.33333333])
    """
    n = int(right.sum())
    return np.where(right, (n + 1) / (n + 2), 1 / (len(right) - n + 2))


def fit_slopes(scores: Floats, t: Floats, intercept: bool = True) -> tuple[Floats, float]:
    """Slopes a > 0 and intercept b of sigmoid(a . s + b) with the least log-loss against targets t.

    The loss is convex: if the free optimum breaks a bound, the best one has slopes on their bounds.
    """
    centre = scores.mean(0) if intercept else np.zeros(scores.shape[1])
    scale = scores.std(0) if intercept else np.sqrt((scores**2).mean(0))
    if not scale.all() or (intercept and not np.ptp(scores, axis=0).all()):
        raise BadInput(f"all {len(t)} held-out scores are equal: they tell no answers apart")
    x = np.hstack([(scores - centre) / scale, np.full((len(scores), int(intercept)), 1.0)])
    slopes = range(scores.shape[1])
    best = newton(x, t, ())
    if (best[: len(slopes)] < FLOOR).any():
        tried = [newton(x, t, held) for held in _subsets(slopes)]
        kept = [w for w in tried if (w[: len(slopes)] >= FLOOR).all()]
        best = min(kept, key=lambda w: log_loss(x @ w, t))
    a = best[: len(slopes)] / scale
    return a, float(best[-1] - a @ centre) if intercept else 0.0


def _subsets(slopes: range) -> list[tuple[int, ...]]:
    return list(chain.from_iterable(combinations(slopes, k) for k in range(1, len(slopes) + 1)))


def log_loss(z: Floats, t: Floats) -> float:
    """Mean of log(1 + e^z) - t z, the cross-entropy of sigmoid(z) against t."""
    return float((np.logaddexp(0, z) - t * z).mean())


def newton(x: Floats, t: Floats, held: tuple[int, ...]) -> Floats:
    """The w with the least log-loss of sigmoid(x w), its coordinates in `held` staying at FLOOR."""
    w = np.zeros(x.shape[1])
    w[list(held)] = FLOOR
    free = [i for i in range(x.shape[1]) if i not in held]
    loss = log_loss(x @ w, t)
    for _ in range(STEPS if free else 0):
        p = expit(x @ w)
        slope = x[:, free].T @ (p - t) / len(t)
        curve = (x[:, free] * (p * (1 - p))[:, None]).T @ x[:, free] / len(t)
        # Scores that say the same twice make this singular; then the shortest step will do.
        step = np.linalg.lstsq(curve, slope, rcond=1e-12)[0]
        gain = float(slope @ step)
        if gain < 1e-20:
            break
        size = 1.0
        while size > 1e-9:
            new = w.copy()
            new[free] -= size * step
            fresh = log_loss(x @ new, t)
            if fresh <= loss - 1e-4 * size * gain:
                break
            size /= 2
        else:
            break  # as exact as float64 can be
        w, loss = new, fresh
    return w


def log_of(p: Array) -> Floats:
    """The logarithm in float64, with 0 taken as the smallest number of its kind."""
    u: Floats = np.log(np.maximum(p, np.finfo(p.dtype).tiny).astype(np.float64))
    return u


def fit_temperature(p: Array, y: Array) -> float:
    """The T with the least -log softmax(log p / T)_y; convex in 1/T, so its slope is 0 once."""

    def slope(inverse: float) -> float:
        total = 0.0
        for rows in blocks(p):
            u = log_of(p[rows])
            q = softened(u, inverse)
            total += float((q * u).sum() - u[np.arange(len(u)), y[rows]].sum())
        return total / len(p)

    if slope(1 / HOTTEST) >= 0:
        return HOTTEST
    if slope(HOTTEST) <= 0:
        return 1 / HOTTEST
    log_inverse = brentq(
        lambda v: slope(np.exp(v)), -np.log(HOTTEST), np.log(HOTTEST), xtol=1e-13, rtol=1e-13
    )
    return float(np.exp(-log_inverse))


def softened(u: Floats, inverse: float) -> Floats:
    """softmax(u / T), where inverse = 1 / T."""
    e = np.exp(inverse * (u - u.max(1, keepdims=True)))
    return np.asarray(e / e.sum(1, keepdims=True))


def blocks(p: Array) -> list[slice]:
    """Slices of rows that hold about CELLS numbers each."""
    rows = max(1, CELLS // p.shape[1])
    return [slice(i, i + rows) for i in range(0, len(p), rows)]
