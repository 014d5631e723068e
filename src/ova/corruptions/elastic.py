"""Elastic deformation: a random affine map, and a smooth random displacement of every pixel."""

import math

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.corruption import Corruption, Images, Work
from ova.corruptions.draws import Keys, uniform
from ova.corruptions.filters import Floats, Pixels, Plane, gaussian_matrix, smooth
from ova.corruptions.jit import compiled


def elastic_transform(work: Work) -> Images:
    """A random affine map of three points, then a smooth random displacement of every pixel.

    The constants are pixels of the size they were chosen for, and grow with the image.
    """
    height, width = work.images.shape[1:3]
    move, sigma, jitter = (c * min(height, width) / work.size for c in work.strength)
    down, across = (gaussian_matrix(size, sigma, 3.0, "symmetric") for size in (height, width))
    maps = affine_maps(work.keys, height, width, jitter)
    return work.through(deform, work.keys, maps, (down, across), move)


def affine_maps(keys: Keys, height: int, width: int, jitter: float) -> NDArray[np.float64]:
    """For each image the 2 x 3 map from a pixel (x, y) of the result to where it comes from."""
    x, y, third = width // 2, height // 2, min(height, width) // 3
    corners = np.array([(x + third, y + third), (x + third, y - third), (x - third, y - third)])
    moved = corners + jitter * draw_corners(keys)
    there = np.concatenate([moved, np.ones((len(keys), 3, 1))], axis=2)
    maps = np.linalg.solve(there, np.broadcast_to(corners.astype(float), moved.shape))
    return np.ascontiguousarray(maps.transpose(0, 2, 1))


@compiled
def draw_corners(keys: Keys) -> NDArray[np.float64]:
    """Six numbers of [-1, 1) per image."""
    out = np.empty((keys.shape[0], 3, 2))
    for n in range(keys.shape[0]):
        for i in range(6):
            out[n, i // 2, i % 2] = 2 * uniform(keys[n], i) - 1
    return out


@compiled
def deform(
    x: Pixels,
    keys: Keys,
    maps: NDArray[np.float64],
    filters: tuple[Plane, Plane],
    move: float,
    out: Pixels,
) -> None:
    """Warp each image, then displace its pixels."""
    height, width = x.shape[1:3]
    area = height * width
    warped = np.empty((height, width, 3), np.float32)
    noise = np.empty((height, width), np.float32)
    between = np.empty((height, width), np.float32)
    dx, dy = np.zeros((height, width), np.float32), np.zeros((height, width), np.float32)
    for n in range(x.shape[0]):
        warp(x[n], maps[n], warped)
        if move != 0:
            fill_uniform(keys[n], 6, noise.reshape(-1))
            smooth(noise, filters[0], filters[1], between, dx)
            fill_uniform(keys[n], 6 + area, noise.reshape(-1))
            smooth(noise, filters[0], filters[1], between, dy)
        sample(warped, dx, dy, move, out[n])


@compiled
def fill_uniform(key: np.uint64, start: int, out: Floats) -> None:
    """Numbers of [-1, 1) from the positions `start` on."""
    for i in range(out.shape[0]):
        out[i] = 2 * uniform(key, start + i) - np.float32(1)


@compiled
def mirror(i: int, size: int) -> int:
    """The pixel at i when the edge pixel is the mirror (... 2 1 0 1 2 ...)."""
    if 0 <= i < size:
        return i
    period = 2 * size - 2
    i = abs(i) % period
    return period - i if i >= size else i


@compiled
def fold(i: int, size: int) -> int:
    """The pixel at i when the mirror stands behind the edge pixel (... 1 0 0 1 ...)."""
    if 0 <= i < size:
        return i
    i %= 2 * size
    return 2 * size - 1 - i if i >= size else i


@compiled
def warp(x: Pixels, m: NDArray[np.float64], out: Floats) -> None:
    """Fill (column, row) with x at m (column, row, 1), linearly interpolated."""
    height, width = x.shape[:2]
    for y in range(height):
        for i in range(width):
            u = m[0, 0] * i + m[0, 1] * y + m[0, 2]
            v = m[1, 0] * i + m[1, 1] * y + m[1, 2]
            left, top = math.floor(u), math.floor(v)
            a, b = np.float32(u - left), np.float32(v - top)
            left, right = mirror(left, width), mirror(left + 1, width)
            top, low = mirror(top, height), mirror(top + 1, height)
            for c in range(3):
                upper = x[top, left, c] * (1 - a) + x[top, right, c] * a
                lower = x[low, left, c] * (1 - a) + x[low, right, c] * a
                out[y, i, c] = upper + b * (lower - upper)


@compiled
def sample(image: Floats, dx: Plane, dy: Plane, move: float, out: Pixels) -> None:
    """Each pixel from a displaced place, linearly interpolated."""
    height, width = image.shape[:2]
    for y in range(height):
        for i in range(width):
            u, v = i + np.float32(move) * dx[y, i], y + np.float32(move) * dy[y, i]
            left, top = math.floor(u), math.floor(v)
            a, b = np.float32(u - left), np.float32(v - top)
            left, right = fold(left, width), fold(left + 1, width)
            top, low = fold(top, height), fold(top + 1, height)
            for c in range(3):
                upper = image[top, left, c] * (1 - a) + image[top, right, c] * a
                lower = image[low, left, c] * (1 - a) + image[low, right, c] * a
                value = upper + b * (lower - upper)
                out[y, i, c] = np.uint8(min(value + np.float32(1e-3), np.float32(255)))


CORRUPTIONS = {
    "elastic_transform": Corruption(
        # displacement, sigma of the displacement, jitter of the corners, all in pixels
        elastic_transform,
        (
            (0, 0, 32 * 0.08),
            (32 * 0.05, 32 * 0.2, 32 * 0.07),
            (32 * 0.08, 32 * 0.06, 32 * 0.06),
            (32 * 0.1, 32 * 0.04, 32 * 0.05),
            (32 * 0.1, 32 * 0.03, 32 * 0.03),
        ),
        # The 244 is the reference's own slip for 224; its published images were made with it.
        (
            (244 * 2, 244 * 0.7, 244 * 0.1),
            (244 * 2, 244 * 0.08, 244 * 0.2),
            (244 * 0.05, 244 * 0.01, 244 * 0.02),
            (244 * 0.07, 244 * 0.01, 244 * 0.02),
            (244 * 0.12, 244 * 0.01, 244 * 0.02),
        ),
    )
}
