"""From a matrix of probabilities or logits to confidence, entropy, log-loss, ... in one compiled pass.

Rows do not know each other, so cutting a matrix into parts changes no value. Each row is read from
memory once and stays in the nearest cache for the few loops below, which are simple enough to
become vector instructions: that is why a maximum, a product and a logarithm have a loop each.
"""

import math
from typing import Any

import numpy as np

from ova.predictions.parallel import compiled

# Rows of `out`.
CONFIDENCE, LOG_P, LOG_ANSWERS, LOG_NONE, SQUARED_ERROR, ENTROPY, MAX_LOGIT, ENERGY = range(8)

BLOCK, RUN = 512, 64  # classes that are taken together, and that are searched together
SUM = 0.01  # a normalised row may miss 1 by this: float16 and four printed digits stay inside
_SMALL = 1e-3  # below this largest p, log(1 - p) is summed as a series
_LN2 = math.log(2)
_ZERO, _UNIT = np.float32(0), np.int32(0x3F800000)  # the last: bits of 1
_EIGHTH_BITS = np.int32(0x3E000000)  # of 1/8
_FRACTION, _MIDDLE = np.int32(0x7FFFFF), np.float32(3 / 2)
_PER_BIT = np.float32(_LN2 / 2**23)
# log(3/2 + f) - (1/2 + f) log 2 for f in [-1/2, 1/2], to 1.3e-6
_L0, _L1, _L2, _L3, _L4, _L5, _L6 = (
    np.float32(c)
    for c in (
        0.05889189, -0.0264635, -0.22225923, 0.09823147,
        -0.04878143, 0.03044924, -0.0178077,
    )
)  # fmt: skip
# For p < 1/8: (p - p^2 / 2 + (1 - p) log(1 - p)) / p^3 = 1/6 + p / 12 + p^2 / 20 + ..., to 3e-6,
# and -(log(1 - p) + p + p^2 / 2) / p^3 = 1/3 + p / 4 + p^2 / 5 + ..., to 1.3e-5
_NO_ENTROPY = 0.16666915, 0.0829899, 0.05700926
_NO = 0.33334623, 0.24822641, 0.23588917


@compiled
def log_not(log_p: float) -> float:
    """log(1 - p) from log p without losing either end."""
    if log_p > -_LN2:
        return math.log(-math.expm1(log_p)) if log_p < 0 else -math.inf
    return math.log1p(-math.exp(log_p))


@compiled
def _log32(bits: Any) -> Any:
    """The logarithm of the positive float32 with these bits, in vector instructions; p < 1/8.

    p = 2^e (1 + r), and the bits less those of 1 are 2^23 (e + r): nearly the logarithm to base 2.
    A polynomial adds the rest; so far from p = 1 the two do not cancel.
    """
    # Each step is cast back: arithmetic on int32 is int64 here, which halves the vectors.
    f = np.int32(np.int32(bits & _FRACTION) | _UNIT).view(np.float32) - _MIDDLE
    rest = _L0 + f * (_L1 + f * (_L2 + f * (_L3 + f * (_L4 + f * (_L5 + f * _L6)))))
    return np.float32(np.int32(bits - _UNIT)) * _PER_BIT + rest


@compiled
def _small_entropy32(p: Any, bits: Any, large: bool) -> Any:
    """-sum p log p of all p < 1/8; `large` says that there are others."""
    total = np.float32(0)
    for k in range(len(p)):
        q = p[k] if not large or bits[k] < _EIGHTH_BITS else _ZERO
        total -= q * _log32(bits[k])
    return total


@compiled
def _small_powers32(p: Any, bits: Any, large: bool) -> tuple[float, float, float]:
    """The sums of p^3, p^4 and p^5 of all p < 1/8.

    They are what log(1 - p) and its entropy have beyond p and p^2. A loop of its own: together with
    the logarithm of p it would need more registers than there are.
    """
    third, fourth, fifth = np.float32(0), np.float32(0), np.float32(0)
    for k in range(len(p)):
        q = p[k] if not large or bits[k] < _EIGHTH_BITS else _ZERO
        square = q * q
        third += square * q
        fourth += square * square
        fifth += square * (square * q)
    return float(third), float(fourth), float(fifth)


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
def _scan(numbers: Any, edge: Any) -> Any:
    """The largest, how many reach the edge, and the sum of their places: the place if it is one.

    All in the one loop that waits for the memory anyway.
    """
    most, count, where = numbers[0], np.int32(0), np.int32(0)
    for k in range(len(numbers)):
        most = max(most, numbers[k])
        hit = np.int32(numbers[k] >= edge)
        count = np.int32(count + hit)
        where = np.int32(where + hit * np.int32(k))
    return most, count, where


@compiled
def _first(bits: Any, peaks: Any, most: Any) -> int:
    """Where `most` stands first; `peaks` are the largest of each block."""
    j = 0
    while peaks[j] != most:
        j += 1
    k = BLOCK * j
    while _largest(bits[k : k + RUN]) != most:
        k += RUN
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
        if p[y] < _SMALL:  # most often, and a logarithm costs as much as thirty classes
            return log_none - _series(p[y : y + 1])
        return log_none - math.log1p(-np.float64(p[y]))
    if small:
        return _series(p[:y]) + _series(p[y + 1 :])
    return _log_product(p[:y]) + _log_product(p[y + 1 :])


@compiled
def _large32(p: Any, bits: Any, found: tuple[Any, Any], normalised: bool) -> tuple[float, float]:
    """What all p >= 1/8 add to the entropy and to log(1 - p); most often there is one."""
    count, where = found
    if count == 1:
        return _one(np.float64(p[where]), normalised)
    entropy, none = 0.0, 0.0
    for k in range(len(p)):
        if bits[k] >= _EIGHTH_BITS:
            more = _one(np.float64(p[k]), normalised)
            entropy, none = entropy + more[0], none + more[1]
    return entropy, none


@compiled
def _one(p: float, normalised: bool) -> tuple[float, float]:
    """The same of one p in all digits; for answers without the p and p^2 that all share."""
    yes = -p * math.log(p)
    if normalised:
        return yes, 0.0
    no = math.log1p(-p) if p < 1 else -math.inf
    return yes - (p - p * p / 2) - ((1 - p) * no if p < 1 else 0.0), no + (p + p * p / 2)


@compiled
def _entropy32(p: Any, bits: Any, found: tuple[Any, Any]) -> float:
    """-sum p log p; `found` are the number and the place of p >= 1/8."""
    large = found[0] > 0
    total = float(_small_entropy32(p, bits, large))
    return total + _large32(p, bits, found, True)[0] if large else total


@compiled
def _answers32(p: Any, bits: Any, found: tuple[Any, Any]) -> tuple[float, float, float, float]:
    """The sums of p, p^2, the entropy of each answer, and log(1 - p)."""
    total, squares, _ = _sums(p)
    large = found[0] > 0
    third, fourth, fifth = _small_powers32(p, bits, large)
    entropy = float(_small_entropy32(p, bits, large)) + (total - squares / 2)
    entropy -= third * _NO_ENTROPY[0] + fourth * _NO_ENTROPY[1] + fifth * _NO_ENTROPY[2]
    none = -(third * _NO[0] + fourth * _NO[1] + fifth * _NO[2]) - (total + squares / 2)
    if large:
        more = _large32(p, bits, found, False)
        entropy, none = entropy + more[0], none + more[1]
    return total, squares, entropy, none


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
    edge = order.dtype.type(_EIGHTH_BITS)
    peaks = np.empty(-(-p.shape[1] // BLOCK), bits.dtype)
    for i in range(len(p)):
        total, squares, product, entropy, log_none = 0.0, 0.0, 1.0, 0.0, 0.0
        for j in range(len(peaks)):
            block = slice(BLOCK * j, min(BLOCK * j + BLOCK, p.shape[1]))
            q, its_bits = p[i, block], bits[i, block]
            high, count, where = _scan(order[i, block], edge)
            peaks[j] = high
            if high > one:
                if not ((q >= 0) & (q <= 1)).all():
                    return i
                # It was -0.0, which lies in [0, 1]; with a sign it is the smallest.
                peaks[j], count, where = _scan(its_bits, bits.dtype.type(edge))
            if single and not normalised:
                part = _answers32(q, its_bits, (count, where))
                total, squares = total + part[0], squares + part[1]
                entropy, log_none = entropy + part[2], log_none + part[3]
                continue
            sums = _sums(q)
            total, squares, product = total + sums[0], squares + sums[1], product * sums[2]
            if single:
                entropy += _entropy32(q, its_bits, (count, where))
            else:
                entropy += _entropy64(q) + (0.0 if normalised else _no_entropy64(q))
        most = _largest(peaks)
        top = _first(bits[i], peaks, most)
        confidence = np.float64(p[i, top])
        small = confidence < _SMALL
        if normalised and abs(total - 1) > SUM:
            return i
        if not single or normalised:
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
