"""One pass over a matrix of probabilities or logits that leaves one row of columns per example.

Rows do not know each other, so cutting a matrix into parts changes no value. Each row is read from
memory once and stays in the nearest cache for the few loops below, which are simple enough to
become vector instructions: that is why a maximum, a product and a logarithm have a loop each.
"""

import math
from typing import Any

import numpy as np

from ova.predictions.compiled import compiled, exactly

# Rows of `out`.
CONFIDENCE, LOG_P, LOG_ANSWERS, LOG_NONE, SQUARED_ERROR, ENTROPY, MAX_LOGIT, ENERGY = range(8)

SUM = 0.01  # a normalised row may miss 1 by this: float16 and four printed digits stay inside
_SMALL = 1e-3  # below this largest p, log(1 - p) is summed as a series
_LN2, _LN2_32 = math.log(2), np.float32(math.log(2))
_HALF, _ONE = np.float32(0.5), np.float32(1)
_UP, _DOWN = np.float32(2**-23), np.float32(2**-24)  # steps of float32 above and below 1
_ROOT = np.int32(0x3F3504F3)  # bits of sqrt(1/2)
_UNIT = np.int32(0x3F800000)  # bits of 1
_BELOW = np.int32(0x3F3504F3 - 0x3F800000)
_FRACTION = np.int32(0x7FFFFF)
# (log(1 + f) - f + f^2 / 2) / f^3 on [sqrt(1/2) - 1, sqrt(2) - 1], fitted to 3e-8 of the logarithm
_C0, _C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c)
    for c in (0.3333391, -0.25001338, 0.19963063, -0.16577585, 0.14914769, -0.14267486, 0.0870043)
)


@compiled
def log_not(log_p: float) -> float:
    """log(1 - p) from log p without losing either end."""
    if log_p > -_LN2:
        return math.log(-math.expm1(log_p)) if log_p < 0 else -math.inf
    return math.log1p(-math.exp(log_p))


@compiled
def _log32(bits: Any) -> Any:
    """The logarithm of the float32 with these (positive) bits, in vector instructions.

    2^e m with m in [sqrt(1/2), sqrt(2)); m - 1 is a whole number of steps, hence exact, and so a p
    near 1 keeps all digits of its logarithm.
    """
    # Each step is cast back: arithmetic on int32 is int64 here, which halves the vectors.
    shifted = np.int32(bits - _ROOT)
    steps = np.int32(np.int32(shifted & _FRACTION) + _BELOW)
    f = np.float32(steps) * (_UP if steps >= 0 else _DOWN)
    e = np.float32(np.int32(shifted >> np.int32(23)))
    tail = _C4 + f * (_C5 + f * _C6)
    tail = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * tail)))
    return e * _LN2_32 + (f + f * f * (f * tail - _HALF))


@compiled
def _entropy32(p: Any, bits: Any) -> float:
    """-sum p log p of a row of float32; p = 0 gives 0 because the logarithm stays finite."""
    total = np.float32(0)
    for k in range(len(p)):
        total -= p[k] * _log32(bits[k])
    return float(total)


@compiled
def _entropy64(p: Any) -> float:
    total = 0.0
    for k in range(len(p)):
        if p[k] > 0:
            total -= p[k] * math.log(p[k])
    return total


@compiled
def _extremes(bits: Any, peaks: Any) -> tuple[Any, Any]:
    """The largest and smallest, and in `peaks` the largest of each 64, to find it again quickly."""
    most, least, K = bits[0], bits[0], len(bits)
    for j in range(K // 64):
        high = bits[64 * j]
        for k in range(64):
            high = max(high, bits[64 * j + k])
            least = min(least, bits[64 * j + k])
        peaks[j] = high
        most = max(most, high)
    if K % 64:
        high = bits[K - K % 64]
        for k in range(K - K % 64, K):
            high = max(high, bits[k])
            least = min(least, bits[k])
        peaks[K // 64] = high
        most = max(most, high)
    return most, least


@compiled
def _inside(p: Any) -> bool:
    """Whether all lie in [0, 1] after all: -0.0 does, though its bits are negative."""
    good = True
    for k in range(len(p)):
        good &= p[k] >= 0
    return good


@compiled
def _first(bits: Any, peaks: Any, most: Any) -> int:
    """Where `most` stands first."""
    j = 0
    while peaks[j] != most:
        j += 1
    k = 64 * j
    while bits[k] != most:
        k += 1
    return k


@compiled
def _sums(p: Any) -> tuple[float, float, float]:
    """The sum of p, of p^2, and the product of 1 - p, in float64 whatever p is."""
    total, squares, product = 0.0, 0.0, 1.0
    for k in range(len(p)):
        q = np.float64(p[k])
        total += q
        squares += q * q
        product *= 1.0 - q
    return total, squares, product


@compiled
def _log_product(p: Any) -> float:
    """The logarithm of the product of 1 - p, taken whenever the product becomes small."""
    total, product, K = 0.0, 1.0, len(p)
    for block in range(0, K - K % 16, 16):
        part = 1.0
        for k in range(16):  # at least 2^-848, so that `product` stays above the smallest float64
            part *= 1.0 - np.float64(p[block + k])
        product *= part
        if product < 1e-50:
            if product == 0:
                return -math.inf
            total += math.log(product)
            product = 1.0
    for k in range(K - K % 16, K):
        product *= 1.0 - np.float64(p[k])
    return total + math.log(product) if product > 0 else -math.inf


@compiled
def _series(p: Any) -> float:
    """The sum of log(1 - p) for p < _SMALL, where 1 - p would round p away."""
    total = 0.0
    for k in range(len(p)):
        q = np.float64(p[k])
        total -= q * (1 + q * (1 / 2 + q * (1 / 3 + q / 4)))
    return total


@compiled
def _log_others(p: Any, y: int, small: Any) -> float:
    """The sum of log(1 - p_j) over all classes but y."""
    if small:
        return _series(p[:y]) + _series(p[y + 1 :])
    return _log_product(p[:y]) + _log_product(p[y + 1 :])


@exactly
def _complement(p: Any, rest: Any, error: Any) -> None:
    """1 - p as a number of its kind, and what rounding it left over: 1 - p = rest + error."""
    one = p.dtype.type(1)
    for k in range(len(p)):
        rest[k] = one - p[k]
        error[k] = (one - rest[k]) - p[k]


@compiled
def _no_entropy32(rest: Any, bits: Any, error: Any) -> float:
    """-sum q log q for q = rest + error, to first order in the error; q = 0 gives 0."""
    total = np.float32(0)
    for k in range(len(rest)):
        log_q = _log32(bits[k])
        total -= rest[k] * log_q + error[k] * (log_q + _ONE)
    return float(total)


@compiled
def _no_entropy64(p: Any) -> float:
    total = 0.0
    for k in range(len(p)):
        if p[k] < 1:
            total -= (1 - p[k]) * math.log1p(-p[k])
    return total


@compiled
def reduce_probs(
    p: Any, bits: Any, target: Any, normalised: bool, prediction: Any, out: Any
) -> int:
    """Fill the columns for probabilities `p`; the first row that breaks a rule, or -1.

    `bits` are the bytes of `p` as integers. Numbers in [0, 1] have the order of their bits, a
    negative number has negative bits and NaN more than 1 has: a maximum and a minimum of integers
    find the largest p and every bad value.
    """
    single = bits.itemsize == 4
    one = bits.dtype.type(_UNIT if single else 0x3FF0000000000000)
    rest, error = np.empty(p.shape[1], p.dtype), np.empty(p.shape[1], p.dtype)
    rest_bits, peaks = rest.view(bits.dtype), np.empty((p.shape[1] + 63) // 64, bits.dtype)
    for i in range(len(p)):
        most, least = _extremes(bits[i], peaks)
        if most > one or (least < 0 and not _inside(p[i])):
            return i
        top = _first(bits[i], peaks, most)
        confidence = np.float64(p[i, top])
        small = confidence < _SMALL
        total, squares, product = _sums(p[i])
        if normalised and abs(total - 1) > SUM:
            return i
        log_none = math.log(product) if product > 1e-250 else _log_product(p[i])
        if small:
            log_none = _series(p[i])
        entropy = _entropy32(p[i], bits[i]) if single else _entropy64(p[i])
        y = target[i]
        own = np.float64(p[i, y]) if y >= 0 else 0.0
        log_p = math.log(own) if own > 0 else -math.inf
        prediction[i] = top
        out[CONFIDENCE, i] = confidence
        out[LOG_NONE, i] = log_none
        out[LOG_P, i] = log_p if y >= 0 else math.nan
        out[SQUARED_ERROR, i] = max(squares - own * own, 0.0) + (1 - own) ** 2
        if y < 0:
            out[SQUARED_ERROR, i] = math.nan if normalised else squares
        if not normalised:
            out[LOG_ANSWERS, i] = log_p + _log_others(p[i], y, small) if y >= 0 else log_none
            if single:
                _complement(p[i], rest, error)
                entropy += _no_entropy32(rest, rest_bits, error)
            else:
                entropy += _no_entropy64(p[i])
        out[ENTROPY, i] = max(entropy, 0.0)
    return -1


@compiled
def reduce_logits(
    z: Any, log_p: Any, target: Any, normalised: bool, prediction: Any, out: Any
) -> int:
    """The same from logits `z` and log-probabilities, which keep the digits that p = 1 loses."""
    for i in range(len(z)):
        top, most = 0, z[i, 0]
        for k in range(z.shape[1]):
            if math.isnan(z[i, k]) or not log_p[i, k] <= 1e-6:
                return i
            most = max(most, z[i, k])
            # Two p may round to one value where their logits do not.
            if log_p[i, k] > log_p[i, top] or (
                log_p[i, k] == log_p[i, top] and z[i, k] > z[i, top]
            ):
                top = k
        y = target[i]
        total, energy, entropy, log_none, answers, squares = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for k in range(z.shape[1]):
            log_q = min(np.float64(log_p[i, k]), 0.0)  # above 0 only by rounding
            q, no = math.exp(log_q), log_not(log_q)
            total += q
            energy += math.exp(np.float64(z[i, k]) - most) if math.isfinite(most) else 1.0
            log_none += no
            entropy -= q * log_q if q > 0 else 0.0
            entropy -= (1 - q) * no if q < 1 and not normalised else 0.0
            answers += log_q if k == y else no
            squares += math.expm1(log_q) ** 2 if k == y else q * q
        if normalised and abs(total - 1) > SUM:
            return i
        prediction[i] = top
        out[CONFIDENCE, i] = math.exp(min(np.float64(log_p[i, top]), 0.0))
        out[LOG_NONE, i] = log_none
        out[ENTROPY, i] = entropy
        out[MAX_LOGIT, i] = most
        out[ENERGY, i] = most + math.log(energy) if math.isfinite(most) else most
        out[LOG_P, i] = min(np.float64(log_p[i, y]), 0.0) if y >= 0 else math.nan
        out[LOG_ANSWERS, i] = answers
        out[SQUARED_ERROR, i] = squares if y >= 0 or not normalised else math.nan
    return -1
