"""Random numbers that are a function of (seed, corruption, severity, image, position).

Nothing is drawn in sequence: the number at a position is computed from the position, so batch
size, order and number of threads cannot change it. The generator is SplitMix64 (Steele, Lea,
Flood, 2014), started per image at a hash of everything that names the image.
"""

from functools import cache
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ova.corruptions.filters import Floats
from ova.corruptions.jit import compiled

Keys = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
ONE, S16, S27, S30, S31, S32, S40 = (np.uint64(k) for k in (1, 16, 27, 30, 31, 32, 40))
LOW16, LOW32 = np.uint64(0xFFFF), np.uint64(0xFFFFFFFF)


def keys(seed: int, name: str, severity: int, ids: NDArray[np.integer]) -> Keys:
    """One 64-bit key per image.

    >>> a = keys(0, "fog", 1, np.array([7, 8]))
    >>> bool((a[::-1] == keys(0, "fog", 1, np.array([8, 7]))).all())
    True
    """
    start = blake2b(f"{seed}/{name}/{severity}".encode(), digest_size=8).digest()
    with np.errstate(over="ignore"):
        z = np.asarray(ids).astype(np.uint64) * GOLDEN + np.uint64(int.from_bytes(start, "big"))
        for _ in range(2):
            z = (z ^ (z >> S30)) * FIRST
            z = (z ^ (z >> S27)) * SECOND
            z = z ^ (z >> S31)
    return np.asarray(z, np.uint64)


@compiled
def bits(key: np.uint64, position: int) -> np.uint64:
    """64 random bits of a position."""
    z = key + (np.uint64(position) + ONE) * GOLDEN
    z = (z ^ (z >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@compiled
def uniform(key: np.uint64, position: int) -> np.float32:
    """A number of [0, 1) with 24 random bits."""
    return np.float32(bits(key, position) >> S40) * np.float32(2.0**-24)


@compiled
def fill_normal(key: np.uint64, table: Floats, out: Floats) -> None:
    """Standard normal numbers into a flat array, four from each 64 bits."""
    size = out.shape[0]
    for block in range((size + 3) // 4):
        b = bits(key, block)
        for i in range(4 * block, min(4 * block + 4, size)):
            out[i] = table[b & LOW16]
            b >>= S16


@cache
def normal_table() -> Floats:
    """The 65,536 quantiles of the standard normal distribution, with variance exactly one.

    Sixteen bits choose a quantile. The largest is 4.2, and the steps between neighbours are far
    below one grey level at every severity but for the outermost few.
    """
    z = ndtri((np.arange(65536) + 0.5) / 65536)
    return np.asarray(z / z.std(), np.float32)
