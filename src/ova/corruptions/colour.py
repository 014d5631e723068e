"""Colour and light: brightness, contrast, saturation."""

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.corruption import Corruption, Images, Work
from ova.corruptions.filters import Pixels
from ova.corruptions.jit import compiled


def brightness(work: Work) -> Images:
    """Add to the value V = max(r, g, b), hue and saturation kept: rgb' = rgb V' / V."""
    lighter = np.clip(np.arange(256) / 255.0 + work.strength, 0, 1) * 255
    return work.through(brighten, lighter, shape=(-1, 3))


@compiled
def brighten(x: Pixels, lighter: NDArray[np.float64], out: Pixels) -> None:
    """Look the new value of each pixel up in a table of 256."""
    for i in range(x.shape[0]):
        r, g, b = x[i, 0], x[i, 1], x[i, 2]
        top = max(r, g, b)
        new = lighter[top]
        for c in range(3):
            # Black has no hue: it becomes grey. The brightest channel is V' itself.
            out[i, c] = np.uint8(new if x[i, c] == top else x[i, c] * new / top)


def saturate(work: Work) -> Images:
    """Saturation S' = a S + b, hue and value kept: rgb' = V - (V - rgb) S' / S.

    A grey pixel has no hue. The reference counts it as red, so that b > 0 tints it.
    """
    factor, added = work.strength
    return work.through(change_saturation, float(factor), float(added), shape=(-1, 3))


@compiled
def change_saturation(x: Pixels, factor: float, added: float, out: Pixels) -> None:
    """Pull the channels of each pixel from or to its brightest."""
    for i in range(x.shape[0]):
        r, g, b = np.int64(x[i, 0]), np.int64(x[i, 1]), np.int64(x[i, 2])
        top, span = max(r, g, b), max(r, g, b) - min(r, g, b)
        if span == 0:
            out[i, 0] = top
            out[i, 1] = out[i, 2] = np.uint8(top * (1 - min(max(added, 0.0), 1.0)))
            continue
        s = min(max(factor * (span / top) + added, 0.0), 1.0)
        v = top / 255.0
        for c in range(3):
            fraction = (top - np.int64(x[i, c])) / span
            out[i, c] = np.uint8(v * (1 - s * fraction) * 255)


def contrast(work: Work) -> Images:
    """(x - mean) c + mean with the mean of each channel."""
    return work.through(pull_to_mean, float(work.strength), shape=(len(work.images), -1, 3))


@compiled
def pull_to_mean(x: Pixels, kept: float, out: Pixels) -> None:
    """Keep a share of each value and give the rest to its channel's mean."""
    pixels = x.shape[1]
    for n in range(x.shape[0]):
        sums = np.zeros(3, np.int64)
        for i in range(pixels):
            for c in range(3):
                sums[c] += x[n, i, c]
        rest = (1 - kept) * sums / pixels
        for i in range(pixels):
            for c in range(3):
                out[n, i, c] = np.uint8(x[n, i, c] * kept + rest[c] + 1e-9)


CORRUPTIONS = {
    "brightness": Corruption(  # added to the value
        brightness, (0.05, 0.1, 0.15, 0.2, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5)
    ),
    "contrast": Corruption(  # share of the contrast kept
        contrast, (0.75, 0.5, 0.4, 0.3, 0.15), (0.4, 0.3, 0.2, 0.1, 0.05)
    ),
    "saturate": Corruption(  # factor, added
        saturate,
        ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
        ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2)),
    ),
}
