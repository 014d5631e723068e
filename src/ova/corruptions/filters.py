"""Filters that several corruptions share, on one image in float32."""

from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.jit import compiled

Pixels = NDArray[np.uint8]
Floats = NDArray[np.float32]
Row = NDArray[np.float32]
Plane = NDArray[np.float32]
Indices = NDArray[np.int64]
Edge = Literal["edge", "reflect", "symmetric"]  # what goes on beyond the edge, as numpy calls it


def gaussian_weights(sigma: float, truncate: float = 4.0) -> Row:
    """Weights exp(-i^2 / 2 sigma^2), normalised, cut at `truncate` sigmas.

    >>> gaussian_weights(0.05)
    array([1.], dtype=float32)
    """
    radius = int(truncate * sigma + 0.5)
    offsets = np.arange(-radius, radius + 1)
    weights = np.exp(-(offsets**2) / (2 * sigma**2)) if radius else np.ones(1)
    return np.asarray(weights / weights.sum(), np.float32)


@lru_cache(maxsize=8)
def gaussian_matrix(size: int, sigma: float, truncate: float, edge: Edge) -> Plane:
    """The filter as a size x size matrix, which holds for any sigma, also beyond the image."""
    weights = gaussian_weights(sigma, truncate)
    radius = len(weights) // 2
    matrix = np.zeros((size, size), np.float64)
    pixels = inside(size, radius, edge)
    for row in range(size):
        np.add.at(matrix[row], pixels[row : row + len(weights)], weights)
    return matrix.astype(np.float32)


@compiled
def blur(image: Plane, weights: Row, line: Row, out: Plane) -> None:
    """A separable filter on H x 3W interleaved values; beyond the edge the edge goes on."""
    height, length = image.shape
    radius = weights.shape[0] // 2
    for y in range(height):
        line[:] = 0
        for j in range(weights.shape[0]):
            row = image[min(max(y + j - radius, 0), height - 1)]
            w = weights[j]
            for i in range(length):
                line[3 * radius + i] += w * row[i]
        for i in range(3 * radius):
            line[i] = line[3 * radius + i % 3]
            line[3 * radius + length + i] = line[3 * radius + length - 3 + i % 3]
        out[y] = 0
        for j in range(weights.shape[0]):
            w = weights[j]
            for i in range(length):
                out[y, i] += w * line[3 * j + i]


@compiled
def smooth(field: Plane, down: Plane, across: Plane, between: Plane, out: Plane) -> None:
    """Make out = down . field . across^T for band matrices; what is zero at the ends is passed over."""
    height, width = field.shape
    for y in range(height):
        between[y] = 0
        for k in range(height):
            w = down[y, k]
            if w != 0:
                for x in range(width):
                    between[y, x] += w * field[k, x]
    for x in range(width):
        first, last = 0, width
        while across[x, first] == 0:
            first += 1
        while across[x, last - 1] == 0:
            last -= 1
        for y in range(height):
            total = np.float32(0)
            for k in range(first, last):
                total += across[x, k] * between[y, k]
            out[y, x] = total


@compiled
def pad_line(line: Row, columns: Indices, channels: int, out: Row) -> None:
    """Copy pixels `columns` of a line, each of `channels` values."""
    for i in range(columns.shape[0]):
        for c in range(channels):
            out[channels * i + c] = line[channels * columns[i] + c]


@compiled
def add_taps(
    padded: Plane, rows: Indices, at: Indices, weights: Row, channels: int, out: Plane
) -> None:
    """Make out[y] = sum over taps of weight x padded[rows[y + dy]] from dx on; `at` holds (dy, dx).

    The lines are padded sideways, up and down `rows` says which line stands for one outside.
    """
    length = out.shape[1]
    for y in range(out.shape[0]):
        target = out[y]
        target[:] = 0
        for t in range(weights.shape[0]):
            source = padded[rows[y + at[t, 0]]]
            start = channels * at[t, 1]
            w = weights[t]
            for i in range(length):
                target[i] += w * source[start + i]


def inside(size: int, margin: int, edge: Edge) -> Indices:
    """For the positions -margin ... size + margin - 1, the pixel that stands there.

    >>> inside(4, 2, "edge").tolist(), inside(4, 2, "reflect").tolist()
    ([0, 0, 0, 1, 2, 3, 3, 3], [2, 1, 0, 1, 2, 3, 2, 1])
    """
    return np.pad(np.arange(size), margin, mode=edge)


def zoom_lerp(size: int, factor: float) -> tuple[Indices, Row]:
    """Where each pixel of a side looks when the centre is enlarged: left neighbour, right's weight.

    >>> zoom_lerp(4, 2.0)[0].tolist(), zoom_lerp(4, 2.0)[1].round(2).tolist()
    ([1, 1, 1, 1], [0.0, 0.33000001311302185, 0.6700000166893005, 1.0])
    """
    length = int(np.ceil(size / factor))
    zoomed = round(length * factor)
    places = (np.arange(size) + (zoomed - size) // 2) * ((length - 1) / max(zoomed - 1, 1))
    left = np.clip(np.floor(places), 0, max(length - 2, 0)).astype(np.int64)
    return left + (size - length) // 2, (places - left).astype(np.float32)
