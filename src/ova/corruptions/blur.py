"""Blurs: Gaussian, defocus, frosted glass, motion, zoom."""

import math
from functools import lru_cache
from typing import Any

import cv2
import numpy as np

from ova.corruptions.corruption import Corruption, Images, Work
from ova.corruptions.draws import LOW16, S16, Keys, bits, uniform
from ova.corruptions.filters import (
    Indices,
    Pixels,
    Plane,
    Row,
    add_taps,
    blur,
    gaussian_weights,
    inside,
    pad_line,
    zoom_lerp,
)
from ova.corruptions.jit import compiled

# Sums of weights miss a whole grey level by a few float32 roundings; cutting would make it a
# level less. The reference has the same doubt in float64, with its own luck.
NUDGE = np.float32(1e-4)


@compiled
def cut(values: Plane, out: Pixels) -> None:
    """Whole grey levels of H x 3W values, cut and not rounded, as the reference does."""
    for y in range(values.shape[0]):
        for i in range(values.shape[1]):
            v = values[y, i] + NUDGE
            out[y, i] = np.uint8(min(max(v, np.float32(0)), np.float32(255)))


def gaussian_blur(work: Work) -> Images:
    """Gaussian of width sigma; beyond the edge the edge goes on."""
    return work.through(blur_all, gaussian_weights(work.strength), shape=work.lines)


@compiled
def blur_all(x: Pixels, weights: Row, out: Pixels) -> None:
    """Filter each image."""
    height, length = x.shape[1:]
    image = np.empty((height, length), np.float32)
    blurred = np.empty((height, length), np.float32)
    line = np.empty(length + 3 * (weights.shape[0] - 1), np.float32)
    for n in range(x.shape[0]):
        image[:] = x[n]
        blur(image, weights, line, blurred)
        cut(blurred, out[n])


def defocus_blur(work: Work) -> Images:
    """A disk with a soft edge; beyond the edge the image is mirrored."""
    at, weights, radius = disk(*work.strength)
    height, width = work.images.shape[1:3]
    rows, columns = inside(height, radius, "reflect"), inside(width, radius, "reflect")
    return work.through(taps_all, rows, columns, at[None], weights, shape=work.lines)


@lru_cache(maxsize=10)
def disk(radius: float, edge: float) -> tuple[Indices, Row, int]:
    """The non-zero taps of the disk and how far they reach."""
    reach = max(8, int(radius))
    size = (3, 3) if radius <= 8 else (5, 5)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1]
    solid = (x**2 + y**2 <= radius**2).astype(np.float32)
    soft = cv2.GaussianBlur(solid / solid.sum(), ksize=size, sigmaX=edge)
    at = np.argwhere(soft > 0)
    reach_used = int(np.abs(at - reach).max())
    return at - reach + reach_used, soft[soft > 0], reach_used


@compiled
def taps_all(
    x: Pixels, rows: Indices, columns: Indices, at: Indices, weights: Row, out: Pixels
) -> None:
    """Sum taps in each image: its own, or those of the first where `at` has no more."""
    height, length = x.shape[1:]
    padded = np.empty((height, 3 * columns.shape[0]), np.float32)
    blurred = np.empty((height, length), np.float32)
    for n in range(x.shape[0]):
        for y in range(height):
            pad_line(x[n, y], columns, 3, padded[y])
        add_taps(padded, rows, at[n % at.shape[0]], weights, 3, blurred)
        cut(blurred, out[n])


def glass_blur(work: Work) -> Images:
    """Blur, let pixels take a neighbour's place in sequence, blur again.

    The reference means to swap two pixels, but its assignment copies one over the other, and its
    offsets never include the largest one. Both stay, because the published sets have them.
    """
    sigma, reach, rounds = work.strength
    weights = gaussian_weights(sigma)
    out = work.through(blur_all, weights, shape=work.lines)
    for image, key in zip(out.reshape(work.lines), work.keys, strict=True):
        displace(image, key, reach, rounds)
    blur_all(out.reshape(work.lines), weights, out.reshape(work.lines))
    return out


@compiled
def displace(image: Pixels, key: np.uint64, reach: int, rounds: int) -> None:
    """From the lower right corner on, each pixel becomes one at an offset of [-reach, reach)."""
    height, width = image.shape[0], image.shape[1] // 3
    span = np.uint64(2 * reach)
    for turn in range(rounds):
        for y in range(height - reach, reach, -1):
            for x in range(width - reach, reach, -1):
                b = bits(key, (turn * height + y) * width + x)
                dx = np.int64(((b & LOW16) * span) >> S16) - reach
                b >>= S16
                dy = np.int64(((b & LOW16) * span) >> S16) - reach
                for c in range(3):
                    image[y, 3 * x + c] = image[y + dy, 3 * (x + dx) + c]


def motion_blur(work: Work) -> Images:
    """Half a Gaussian along a line whose angle lies within 45 degrees of the horizontal."""
    radius, sigma = work.strength
    height, width = work.images.shape[1:3]
    weights = motion_weights(radius, sigma)
    rows, columns = (inside(size, len(weights), "edge") for size in (height, width))
    paths = motion_paths(angles(work.keys, 0, -45), len(weights))
    return work.through(taps_all, rows, columns, paths, weights, shape=work.lines)


@lru_cache(maxsize=20)
def motion_weights(radius: int, sigma: float) -> Row:
    """Half a Gaussian over 2 radius + 1 steps; steps that weigh less than a rounding are left off."""
    weights = np.exp(-(np.arange(2 * radius + 1) ** 2) / (2 * sigma**2))
    weights /= weights.sum()
    return np.asarray(weights[weights > 1e-8], np.float32)


def angles(keys: Keys, position: int, least: float) -> Row:
    """For each image an angle between `least` and 90 degrees more, drawn at that position."""
    shares = np.array([uniform(key, position) for key in keys], np.float32)
    return np.float32(90) * shares + np.float32(least)


@compiled
def motion_paths(angles: Row, steps: int) -> Indices:
    """For each angle the pixels along a line, counted from the margin (as many as there are steps)."""
    at = np.empty((angles.shape[0], steps, 2), np.int64)
    for n in range(angles.shape[0]):
        angle = math.radians(angles[n])
        down, right = math.sin(angle), math.cos(angle)
        for i in range(steps):
            at[n, i, 0] = steps + math.ceil(i * down - 0.5)
            at[n, i, 1] = steps + math.ceil(i * right - 0.5)
    return at


def zoom_blur(work: Work) -> Images:
    """The mean of the image and of its enlarged centres."""
    height, width = work.images.shape[1:3]
    tables = zoom_tables(height, width, *work.strength)
    return work.through(zoom_all, tables, shape=work.lines)


@lru_cache(maxsize=20)
def zoom_tables(
    height: int, width: int, end: float, step: float
) -> tuple[Indices, Plane, Indices, Plane, Row]:
    """Neighbours and weights of each zoom, down and across; equal zooms are counted, not repeated."""
    factors = np.arange(1, end, step)
    layers: dict[bytes, list[Any]] = {}
    for factor in factors:
        down, across = (zoom_lerp(size, float(factor)) for size in (height, width))
        name = b"".join(array.tobytes() for array in (*down, *across))
        layers.setdefault(name, [*down, *across, 0])[-1] += 1
    columns = [np.stack(column) for column in zip(*layers.values(), strict=True)]
    share = (columns.pop() / (len(factors) + 1)).astype(np.float32)
    return columns[0], columns[1], columns[2], columns[3], share


@compiled
def zoom_all(x: Pixels, grid: tuple[Indices, Plane, Indices, Plane, Row], out: Pixels) -> None:
    """Sum the enlarged centres of each image, line by line."""
    top, lower, left, right, share = grid
    height, length = x.shape[1:]
    layers, width = left.shape
    own = np.float32(1) - share.sum()
    total = np.empty((height, length), np.float32)
    line = np.empty(length + 3, np.float32)
    for n in range(x.shape[0]):
        for y in range(height):
            for i in range(length):
                total[y, i] = own * x[n, y, i]
            for z in range(layers):
                above, below = x[n, top[z, y]], x[n, min(top[z, y] + 1, height - 1)]
                w, v = share[z] * (1 - lower[z, y]), share[z] * lower[z, y]
                for i in range(length):
                    line[i] = w * above[i] + v * below[i]
                for i in range(3):
                    line[length + i] = line[length - 3 + i]
                for p in range(width):
                    j, b = 3 * left[z, p], right[z, p]
                    a = np.float32(1) - b
                    for c in range(3):
                        total[y, 3 * p + c] += a * line[j + c] + b * line[j + 3 + c]
        cut(total, out[n])


CORRUPTIONS = {
    "gaussian_blur": Corruption(  # sigma
        gaussian_blur, (0.4, 0.6, 0.7, 0.8, 1.0), (1, 2, 3, 4, 6)
    ),
    "defocus_blur": Corruption(  # radius, edge
        defocus_blur,
        ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        ((3, 0.1), (4, 0.5), (6, 0.5), (8, 0.5), (10, 0.5)),
    ),
    "glass_blur": Corruption(  # sigma, largest offset, rounds
        glass_blur,
        ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        ((0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2)),
    ),
    "motion_blur": Corruption(  # radius, sigma
        motion_blur,
        ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        ((10, 3), (15, 5), (15, 8), (15, 12), (20, 15)),
    ),
    "zoom_blur": Corruption(  # end, step
        zoom_blur,
        ((1.06, 0.01), (1.11, 0.01), (1.16, 0.01), (1.21, 0.01), (1.26, 0.01)),
        ((1.11, 0.01), (1.16, 0.01), (1.21, 0.02), (1.26, 0.02), (1.31, 0.03)),
    ),
}
