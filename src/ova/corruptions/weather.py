"""Weather: snow, frost and fog."""

from functools import lru_cache

import cv2
import numpy as np

from ova.corruptions.blur import NUDGE, angles, motion_paths, motion_weights
from ova.corruptions.corruption import Corruption, Images, Work
from ova.corruptions.draws import Keys, fill_normal, normal_table, uniform
from ova.corruptions.filters import (
    Indices,
    Pixels,
    Plane,
    Row,
    add_taps,
    inside,
    pad_line,
    zoom_lerp,
)
from ova.corruptions.jit import compiled
from ova.corruptions.textures import Textures


def snow(work: Work) -> Images:
    """Flakes from enlarged noise, blurred along their fall, laid over a whitened image twice."""
    mean, deviation, zoom, threshold, radius, sigma, kept = work.strength
    height, width = work.images.shape[1:3]
    weights = motion_weights(radius, sigma)
    grid = (*zoom_lerp(height, zoom), *zoom_lerp(width, zoom))
    rows, columns = (inside(size, len(weights), "edge") for size in (height, width))
    how = np.array([mean, deviation, threshold, kept], np.float32)
    # The noise uses the positions from zero up; the angle has one of its own.
    paths = motion_paths(angles(work.keys, height * width, -135), len(weights))
    fall = (rows, columns, paths, weights, normal_table())
    return work.through(snow_all, work.keys, how, grid, fall, shape=work.lines)


@compiled
def snow_all(
    x: Pixels,
    keys: Keys,
    how: Row,
    grid: tuple[Indices, Row, Indices, Row],
    fall: tuple[Indices, Indices, Indices, Row, Row],
    out: Pixels,
) -> None:
    """Let it snow on each image; `how` is mean, deviation, threshold, share of the image kept."""
    rows, columns, paths, weights, table = fall
    height, length = x.shape[1:]
    width = length // 3
    noise = np.empty((height, width), np.float32)
    flakes = np.empty((height, width), np.float32)
    padded = np.empty((height, columns.shape[0]), np.float32)
    for n in range(x.shape[0]):
        fill_normal(keys[n], table, noise.reshape(-1))
        enlarge(noise, grid, flakes)
        for y in range(height):
            for i in range(width):
                v = how[0] + how[1] * flakes[y, i]
                v = min(v, np.float32(1)) if v >= how[2] else np.float32(0)
                flakes[y, i] = np.floor(np.float32(255) * v)  # whole grey levels, before the blur
            pad_line(flakes[y], columns, 1, padded[y])
        add_taps(padded, rows, paths[n], weights, 1, flakes)
        lay_snow(x[n], flakes, how[3], out[n])


@compiled
def enlarge(field: Plane, grid: tuple[Indices, Row, Indices, Row], out: Plane) -> None:
    """The field looked at through a zoom."""
    top, lower, left, right = grid
    for y in range(out.shape[0]):
        above, below = field[top[y]], field[min(top[y] + 1, field.shape[0] - 1)]
        for i in range(out.shape[1]):
            j, k = left[i], min(left[i] + 1, field.shape[1] - 1)
            upper = above[j] + right[i] * (above[k] - above[j])
            under = below[j] + right[i] * (below[k] - below[j])
            out[y, i] = upper + lower[y] * (under - upper)


@compiled
def lay_snow(x: Pixels, flakes: Plane, kept: float, out: Pixels) -> None:
    """Make kept x + (1 - kept) max(x, 1.5 grey + 1/2), plus the flakes, plus the flakes turned by 180."""
    height, width = flakes.shape
    for y in range(height):
        for i in range(width):
            r, g, b = x[y, 3 * i], x[y, 3 * i + 1], x[y, 3 * i + 2]
            grey = np.float32(0.299) * r + np.float32(0.587) * g + np.float32(0.114) * b
            white = np.float32(1.5) * grey + np.float32(127.5)
            fallen = np.floor(flakes[y, i] + NUDGE)
            fallen += np.floor(flakes[height - 1 - y, width - 1 - i] + NUDGE)
            for c in range(3):
                v = np.float32(x[y, 3 * i + c])
                v = kept * v + (np.float32(1) - kept) * max(v, white) + fallen
                out[y, 3 * i + c] = np.uint8(min(v, np.float32(255)))


def frost(work: Work) -> Images:
    """A weighted sum of the image and a piece of a frost texture.

    The reference has six textures and draws from the first five.
    """
    image_weight, texture_weight, scale = work.strength
    height, width = work.images.shape[1:3]
    pictures, sizes = scaled(work.textures, scale, height, width)
    weights = np.array([image_weight, texture_weight], np.float32)
    return work.through(frost_all, work.keys, pictures, sizes, weights)


@lru_cache(maxsize=8)
def scaled(textures: Textures, scale: float, height: int, width: int) -> tuple[Pixels, Indices]:
    """All textures at the scale of the constants, or as large as the image needs; and their sizes."""
    resized = [resize(picture, scale, height, width) for picture in textures.pictures]
    sizes = np.array([picture.shape[:2] for picture in resized])
    stack = np.zeros((len(resized), *sizes.max(0), 3), np.uint8)
    for i, picture in enumerate(resized):
        stack[i, : picture.shape[0], : picture.shape[1]] = picture
    return stack, sizes


def resize(picture: Pixels, scale: float, height: int, width: int) -> Pixels:
    """The texture at a scale, enlarged until at least one row and column are left to choose."""
    factor = max(scale, (height + 1) / picture.shape[0], (width + 1) / picture.shape[1])
    if factor == 1:
        return picture
    if factor == scale:
        return np.asarray(cv2.resize(picture, None, fx=factor, fy=factor), np.uint8)
    sides = zip((width, height), picture.shape[1::-1], strict=True)
    size = [max(needed + 1, round(side * factor)) for needed, side in sides]
    return np.asarray(cv2.resize(picture, size), np.uint8)


@compiled
def frost_all(
    x: Pixels, keys: Keys, pictures: Pixels, sizes: Indices, weights: Row, out: Pixels
) -> None:
    """Lay a random piece of a random texture over each image."""
    height, width = x.shape[1:3]
    for n in range(x.shape[0]):
        which = np.int64(uniform(keys[n], 0) * pictures.shape[0])
        top = np.int64(uniform(keys[n], 1) * (sizes[which, 0] - height))
        left = np.int64(uniform(keys[n], 2) * (sizes[which, 1] - width))
        for y in range(height):
            piece = pictures[which, top + y, left : left + width]
            for i in range(width):
                for c in range(3):
                    v = weights[0] * x[n, y, i, c] + weights[1] * piece[i, c]
                    out[n, y, i, c] = np.uint8(min(v, np.float32(255)))


def fog(work: Work) -> Images:
    """(x + density plasma) max / (max + density), with plasma from diamonds and squares."""
    density, decay = map(float, work.strength)
    side = 1 << (max(work.images.shape[1:3]) - 1).bit_length()
    return work.through(fog_all, work.keys, np.empty((side, side), np.float32), density, decay)


@compiled
def fog_all(
    x: Pixels, keys: Keys, plasma: Plane, density: float, decay: float, out: Pixels
) -> None:
    """Put a plasma of its own before each image."""
    height, width = x.shape[1:3]
    for n in range(x.shape[0]):
        fill_plasma(keys[n], decay, plasma)
        lowest, highest = plasma.min(), plasma.max()
        brightest = np.float32(x[n].max())
        dim = brightest / (brightest + np.float32(255 * density))
        scale = np.float32(255 * density) / (highest - lowest)
        for y in range(height):
            for i in range(width):
                mist = scale * (plasma[y, i] - lowest)
                for c in range(3):
                    v = (x[n, y, i, c] + mist) * dim
                    out[n, y, i, c] = np.uint8(min(v, np.float32(255)))


@compiled
def fill_plasma(key: np.uint64, decay: float, plasma: Plane) -> None:
    """Diamond-square: each middle is the mean of its four neighbours and a shrinking disturbance."""
    size = plasma.shape[0]
    mask = size - 1  # the map goes round, and its side is a power of two
    plasma[0, 0] = 0
    step, wide = size, 100.0
    while step >= 2:
        half = step // 2
        reach = np.float32(wide * wide)
        for y in range(half, size, step):
            for x in range(half, size, step):
                up, down, left, right = y - half, (y + half) & mask, x - half, (x + half) & mask
                total = plasma[up, left] + plasma[up, right]
                total = total + plasma[down, left] + plasma[down, right]
                disturbance = reach * (2 * uniform(key, y * size + x) - np.float32(1))
                plasma[y, x] = total / np.float32(4) + disturbance
        for y in range(0, size, half):
            for x in range((y + half) & (step - 1), size, step):
                up, down = (y - half) & mask, (y + half) & mask
                left, right = (x - half) & mask, (x + half) & mask
                total = plasma[up, x] + plasma[down, x] + plasma[y, left] + plasma[y, right]
                disturbance = reach * (2 * uniform(key, y * size + x) - np.float32(1))
                plasma[y, x] = total / np.float32(4) + disturbance
        step = half
        wide /= decay


CORRUPTIONS = {
    "snow": Corruption(
        # mean, deviation, zoom, threshold, blur radius, blur sigma, share of the image kept
        snow,
        (
            (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
            (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
            (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
            (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        (
            (0.1, 0.3, 3, 0.5, 10, 4, 0.8),
            (0.2, 0.3, 2, 0.5, 12, 4, 0.7),
            (0.55, 0.3, 4, 0.9, 12, 8, 0.7),
            (0.55, 0.3, 4.5, 0.85, 12, 8, 0.65),
            (0.55, 0.3, 2.5, 0.85, 12, 12, 0.55),
        ),
    ),
    "frost": Corruption(  # weight of the image, weight of the texture, size of the texture
        frost,
        ((1, 0.2, 0.2), (1, 0.3, 0.2), (0.9, 0.4, 0.2), (0.85, 0.4, 0.2), (0.75, 0.45, 0.2)),
        ((1, 0.4, 1), (0.8, 0.6, 1), (0.7, 0.7, 1), (0.65, 0.7, 1), (0.6, 0.75, 1)),
    ),
    "fog": Corruption(  # density, decay of detail
        fog,
        ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        ((1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4)),
    ),
}
