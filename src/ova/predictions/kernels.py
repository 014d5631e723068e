"""One pass over a matrix of probabilities or logits that leaves one row of columns per example.

Rows do not know each other, so cutting a matrix into parts changes no value. Each row is read from
memory once and stays in the nearest cache for the few loops below, which are simple enough to
become vector instructions: that is why a maximum, a product and a logarithm have a loop each.
"""

import math
from typing import Any

import numpy as np

from ova.predictions.compiled import compiled

# Rows of `out`.
CONFIDENCE, LOG_P, LOG_ANSWERS, LOG_NONE, SQUARED_ERROR, ENTROPY, MAX_LOGIT, ENERGY = range(8)

BLOCK = 512  # classes that are taken together
SUM = 0.01  # a normalised row may miss 1 by this: float16 and four printed digits stay inside
_SMALL = 1e-3  # below this largest p, log(1 - p) is summed as a series
_LN2, _LN2_32 = math.log(2), np.float32(math.log(2))
_ZERO, _ONE, _UNIT = np.float32(0), np.float32(1), np.int32(0x3F800000)  # the last: bits of 1
_EIGHTH, _EIGHTH_BITS = np.float32(1 / 8), np.int32(0x3E000000)
_STEP = np.float32(2**-23)  # of float32 above 1
_FRACTION, _MIDDLE = np.int32(0x7FFFFF), np.int32(1 << 22)
# log(3/2 + f) on [-1/2, 1/2], fitted to 3e-7
_L0, _L1, _L2, _L3, _L4, _L5, _L6, _L7 = (
    np.float32(c)
    for c in (
        0.40546528, 0.66666657, -0.22224508, 0.098779038,
        -0.048932415, 0.026069587, -0.017405024, 0.01000929,
    )
)  # fmt: skip
# -(1 - p) log(1 - p) = p - p^2 (1/2 + p / 6 + p^2 / 12 + ...), to 1e-7 of p for p < 1/8
_N2, _N3, _N4, _N5, _N6 = (np.float32(1 / (k * (k - 1))) for k in range(2, 7))


@compiled
def log_not(log_p: float) -> float:
    """log(1 - p) from log p without losing either end."""
    if log_p > -_LN2:
        return math.log(-math.expm1(log_p)) if log_p < 0 else -math.inf
    return math.log1p(-math.exp(log_p))


@compiled
def _log32(bits: Any) -> Any:
    """The logarithm of the positive float32 with these bits, in vector instructions; p < 1/8.

    2^e m with m in [1, 2); so far from p = 1 the two parts of log p do not cancel.
    """
    # Each step is cast back: arithmetic on int32 is int64 here, which halves the vectors.
    f = np.float32(np.int32(np.int32(bits & _FRACTION) - _MIDDLE)) * _STEP
    e = np.float32(np.int32(np.int32(bits - _UNIT) >> np.int32(23)))
    tail = _L4 + f * (_L5 + f * (_L6 + f * _L7))
    return e * _LN2_32 + (_L0 + f * (_L1 + f * (_L2 + f * (_L3 + f * tail))))


@compiled
def _small_entropy32(p: Any, bits: Any) -> Any:
    """-sum p log p of all p < 1/8."""
    total = np.float32(0)
    for k in range(len(p)):
        q = p[k] if bits[k] < _EIGHTH_BITS else _ZERO
        total -= q * _log32(bits[k])
    return total


@compiled
def _small_answers_entropy32(p: Any, bits: Any) -> Any:
    """-sum p log p + (1 - p) log(1 - p) of all p < 1/8, where the second is a short polynomial."""
    total = np.float32(0)
    for k in range(len(p)):
        q = p[k] if bits[k] < _EIGHTH_BITS else _ZERO
        tail = _N2 + q * (_N3 + q * (_N4 + q * (_N5 + q * _N6)))
        total -= q * (_log32(bits[k]) - (_ONE - q * tail))
    return total


@compiled
def _entropy64(p: Any) -> float:
    total = 0.0
    for k in range(len(p)):
        if p[k] > 0:
            total -= p[k] * math.log(p[k])
    return total


@compiled
def _largest(numbers: Any) -> Any:
    most = numbers[0]
    for k in range(len(numbers)):
        most = max(most, numbers[k])
    return most


@compiled
def _inside(p: Any) -> bool:
    """Whether all lie in [0, 1] after all: -0.0 does, though its bits say otherwise."""
    good = True
    for k in range(len(p)):
        good &= 0 <= p[k] <= 1
    return good


@compiled
def _first(bits: Any, peaks: Any, most: Any) -> int:
    """Where `most` stands first; `peaks` are the largest of each block."""
    j = 0
    while peaks[j] != most:
        j += 1
    k = BLOCK * j
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
def _log_others(p: Any, y: int, small: Any, log_none: float) -> float:
    """The sum of log(1 - p_j) over all classes but y."""
    if log_none > -math.inf:  # hence p_y < 1
        return log_none - math.log1p(-np.float64(p[y]))
    if small:
        return _series(p[:y]) + _series(p[y + 1 :])
    return _log_product(p[:y]) + _log_product(p[y + 1 :])


@compiled
def _large_entropy(p: Any, bits: Any, normalised: bool) -> float:
    """The same of all p >= 1/8; most runs of 32 have none."""
    total = 0.0
    for begin in range(0, len(p), 32):
        run = bits[begin : begin + 32]
        if _largest(run) < _EIGHTH_BITS:
            continue
        for k in range(begin, begin + len(run)):
            if p[k] >= _EIGHTH:
                q = np.float64(p[k])
                total -= q * math.log(q)
                if not normalised and q < 1:
                    total -= (1 - q) * math.log1p(-q)
    return total


@compiled
def _block_entropy32(p: Any, bits: Any, large: bool, normalised: bool) -> float:
    """-sum p log p, and unless normalised -sum (1 - p) log(1 - p)."""
    if normalised:
        small = float(_small_entropy32(p, bits))
    else:
        small = float(_small_answers_entropy32(p, bits))
    return small + _large_entropy(p, bits, normalised) if large else small


@compiled
def _no_entropy64(p: Any) -> float:
    total = 0.0
    for k in range(len(p)):
        if p[k] < 1:
            total -= (1 - p[k]) * math.log1p(-p[k])
    return total


@compiled
def reduce_probs(
    p: Any, views: Any, target: Any, normalised: bool, prediction: Any, out: Any
) -> int:
    """Fill the columns for probabilities `p`; the first row that breaks a rule, or -1.

    The `views` are the bytes of `p` as integers with and without a sign. Numbers in [0, 1] have the
    order of their bits, and NaN, negative and larger numbers have more than 1 has: one maximum of
    integers finds the largest p and every bad value.
    """
    bits, order = views
    single = bits.itemsize == 4
    one = order.dtype.type(_UNIT if single else 0x3FF0000000000000)
    peaks = np.empty(-(-p.shape[1] // BLOCK), bits.dtype)
    for i in range(len(p)):
        total, squares, product, entropy = 0.0, 0.0, 1.0, 0.0
        for j in range(len(peaks)):
            block = slice(BLOCK * j, min(BLOCK * j + BLOCK, p.shape[1]))
            q, its_bits = p[i, block], bits[i, block]
            high = _largest(order[i, block])
            peaks[j] = high
            if high > one:
                if not _inside(q):
                    return i
                peaks[j] = _largest(its_bits)  # with a sign -0.0 is the smallest
            sums = _sums(q)
            total, squares, product = total + sums[0], squares + sums[1], product * sums[2]
            if single:
                entropy += _block_entropy32(q, its_bits, peaks[j] >= _EIGHTH_BITS, normalised)
            else:
                entropy += _entropy64(q) + (0.0 if normalised else _no_entropy64(q))
        most = _largest(peaks)
        top = _first(bits[i], peaks, most)
        confidence = np.float64(p[i, top])
        small = confidence < _SMALL
        if normalised and abs(total - 1) > SUM:
            return i
        log_none = math.log(product) if product > 1e-250 else _log_product(p[i])
        if small:
            log_none = _series(p[i])
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
            out[LOG_ANSWERS, i] = (
                log_p + _log_others(p[i], y, small, log_none) if y >= 0 else log_none
            )
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
