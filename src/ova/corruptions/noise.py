"""Noise on each value: Gaussian, shot, impulse, speckle."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.stats import poisson

from ova.corruptions.corruption import Corruption, Images, Work
from ova.corruptions.draws import LOW16, LOW32, S16, S32, Keys, bits, normal_table
from ova.corruptions.filters import Floats, Pixels
from ova.corruptions.jit import compiled


def gaussian_noise(work: Work) -> Images:
    """Add sigma z, with z standard normal."""
    return with_normal(work, np.full(256, 255 * work.strength, np.float32))


def speckle_noise(work: Work) -> Images:
    """Add x sigma z, with z standard normal."""
    return with_normal(work, (np.arange(256) * work.strength).astype(np.float32))


def with_normal(work: Work, scale: Floats) -> Images:
    """Add normal noise whose deviation is given for each of the 256 grey levels."""
    return work.through(add_normal, work.keys, normal_table(), scale, shape=work.flat)


@compiled
def add_normal(x: Pixels, keys: Keys, table: Floats, scale: Floats, out: Pixels) -> None:
    """Four values from each 64 random bits; results are cut to whole grey levels, not rounded."""
    size = x.shape[1]
    for n in range(x.shape[0]):
        for block in range((size + 3) // 4):
            b = bits(keys[n], block)
            for i in range(4 * block, min(4 * block + 4, size)):
                v = x[n, i] + scale[x[n, i]] * table[b & LOW16]
                out[n, i] = np.uint8(min(max(v, np.float32(0)), np.float32(255)))
                b >>= S16


def impulse_noise(work: Work) -> Images:
    """A share of the values becomes black or white, each channel for itself."""
    limit = np.uint64(round(work.strength * 2**31))
    return work.through(replace_values, work.keys, limit, shape=work.flat)


@compiled
def replace_values(x: Pixels, keys: Keys, limit: np.uint64, out: Pixels) -> None:
    """31 bits decide whether to replace a value, one bit decides by what; two values per 64."""
    size = x.shape[1]
    one = np.uint64(1)
    for n in range(x.shape[0]):
        for block in range((size + 1) // 2):
            b = bits(keys[n], block)
            for i in range(2 * block, min(2 * block + 2, size)):
                u = b & LOW32
                out[n, i] = np.uint8(255 * (u & one)) if (u >> one) < limit else x[n, i]
                b >>= S32


def shot_noise(work: Work) -> Images:
    """Poisson(x c) / c: the grain of few photons."""
    tables = poisson_tables(int(work.strength))
    return work.through(count_photons, work.keys, *tables, shape=work.flat)


@lru_cache(maxsize=10)
def poisson_tables(c: int) -> tuple[NDArray[np.uint16], NDArray[np.uint32], Pixels]:
    """For each grey level the distribution function, and where to begin searching in it.

    The k-th count is the answer for 32 random bits u when cumulative[k - 1] <= u < cumulative[k].
    """
    mean = np.arange(256) / 255 * c
    counts = np.arange(int(c + 8 * np.sqrt(c) + 12))
    share = poisson.cdf(counts[None], mean[:, None])
    cumulative = np.minimum(np.round(share * 2.0**32), 2**32 - 1).astype(np.uint32)
    cumulative[:, -1] = 2**32 - 1
    starts = (np.arange(256) << 24).astype(np.uint32)
    guide = np.stack([np.searchsorted(row, starts, side="right") for row in cumulative])
    grey = (np.clip(counts / c, 0, 1) * 255).astype(np.uint8)
    return guide.astype(np.uint16), cumulative, grey


@compiled
def count_photons(
    x: Pixels,
    keys: Keys,
    guide: NDArray[np.uint16],
    cumulative: NDArray[np.uint32],
    grey: Pixels,
    out: Pixels,
) -> None:
    """Invert the distribution function, two values from each 64 random bits."""
    size = x.shape[1]
    last = cumulative.shape[1] - 1
    for n in range(x.shape[0]):
        for block in range((size + 1) // 2):
            b = bits(keys[n], block)
            for i in range(2 * block, min(2 * block + 2, size)):
                u = np.uint32(b & LOW32)
                level = x[n, i]
                k = np.int64(guide[level, u >> np.uint32(24)])
                while k < last and cumulative[level, k] <= u:
                    k += 1
                out[n, i] = grey[k]
                b >>= S32


CORRUPTIONS = {
    "gaussian_noise": Corruption(  # standard deviation
        gaussian_noise, (0.04, 0.06, 0.08, 0.09, 0.10), (0.08, 0.12, 0.18, 0.26, 0.38)
    ),
    "shot_noise": Corruption(  # photons of a white pixel
        shot_noise, (500, 250, 100, 75, 50), (60, 25, 12, 5, 3)
    ),
    "impulse_noise": Corruption(  # share of values replaced
        impulse_noise, (0.01, 0.02, 0.03, 0.05, 0.07), (0.03, 0.06, 0.09, 0.17, 0.27)
    ),
    "speckle_noise": Corruption(  # standard deviation, times the value
        speckle_noise, (0.06, 0.1, 0.12, 0.16, 0.2), (0.15, 0.2, 0.35, 0.45, 0.6)
    ),
}
