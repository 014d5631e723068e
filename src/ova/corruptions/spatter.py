"""Spatter of water or mud on the lens."""

import cv2
import numpy as np

from ova.corruptions.corruption import Corruption, Images, Work
from ova.corruptions.draws import Keys, fill_normal, normal_table
from ova.corruptions.filters import Floats, Pixels, Plane, Row, gaussian_matrix, smooth
from ova.corruptions.jit import compiled

WATER = np.array([175, 238, 238], np.float32)  # pale turquoise
MUD = np.array([63, 42, 20], np.float32)  # brown
SLOPE = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])  # light from one side


def spatter(work: Work) -> Images:
    """Drops where smooth noise is above a threshold: water shines at their edge, mud covers."""
    drops = np.empty(work.images.shape[:3], np.float32)
    mean, deviation, sigma, threshold, strength, is_mud = work.strength
    height, width = work.images.shape[1:3]
    down, across = (gaussian_matrix(size, sigma, 4.0, "edge") for size in (height, width))
    noise = np.array([mean, deviation], np.float32)
    fill_drops(work.keys, normal_table(), noise, down, across, drops)
    if is_mud:
        cover = (drops > threshold).astype(np.float32)
        down, across = (gaussian_matrix(size, strength, 4.0, "edge") for size in (height, width))
        return work.through(throw_mud, cover, down, across)
    drops[drops < threshold] = 0
    shine = np.stack([water_shine(drop) for drop in (drops * 255).astype(np.uint8)])
    return work.through(add_water, shine, strength)


@compiled
def fill_drops(keys: Keys, table: Row, noise: Row, down: Plane, across: Plane, out: Floats) -> None:
    """Smooth normal noise for each image."""
    height, width = out.shape[1:]
    field = np.empty((height, width), np.float32)
    between = np.empty((height, width), np.float32)
    for n in range(out.shape[0]):
        fill_normal(keys[n], table, field.reshape(-1))
        for y in range(height):
            for x in range(width):
                field[y, x] = noise[0] + noise[1] * field[y, x]
        smooth(field, down, across, between, out[n])


def water_shine(drop: Pixels) -> Floats:
    """How bright the water is: by the distance to a drop's edge, lit from one side, 0 to 1."""
    edges = cv2.Canny(drop, 50, 150)
    far = cv2.distanceTransform(255 - edges, cv2.DIST_L2, 5)
    near = cv2.blur(np.minimum(far, 20), (3, 3)).astype(np.uint8)
    lit = cv2.filter2D(cv2.equalizeHist(near), cv2.CV_8U, SLOPE)
    shine = drop * cv2.blur(lit, (3, 3)).astype(np.float32)
    brightest = shine.max()
    # Without any drop the reference divides zero by zero and the image turns black; here it stays.
    return np.asarray(shine / brightest if brightest > 0 else shine, np.float32)


@compiled
def add_water(x: Pixels, shine: Floats, strength: float, out: Pixels) -> None:
    """Add water where it shines."""
    for n in range(x.shape[0]):
        for y in range(x.shape[1]):
            for i in range(x.shape[2]):
                w = np.float32(strength) * shine[n, y, i]
                for c in range(3):
                    out[n, y, i, c] = np.uint8(min(x[n, y, i, c] + w * WATER[c], np.float32(255)))


@compiled
def throw_mud(x: Pixels, cover: Floats, down: Plane, across: Plane, out: Pixels) -> None:
    """Smooth the mud's edge and let it hide what is behind; thin mud falls off."""
    height, width = cover.shape[1:]
    between = np.empty((height, width), np.float32)
    mud = np.empty((height, width), np.float32)
    for n in range(x.shape[0]):
        smooth(cover[n], down, across, between, mud)
        for y in range(height):
            for i in range(width):
                m = min(mud[y, i], np.float32(1)) if mud[y, i] >= 0.8 else np.float32(0)
                for c in range(3):
                    v = x[n, y, i, c] * (np.float32(1) - m) + m * MUD[c]
                    out[n, y, i, c] = np.uint8(v)


CORRUPTIONS = {
    "spatter": Corruption(
        # mean, deviation, sigma, threshold, strength of water or sigma of mud, 0 water or 1 mud
        spatter,
        (
            (0.62, 0.1, 0.7, 0.7, 0.5, 0),
            (0.65, 0.1, 0.8, 0.7, 0.5, 0),
            (0.65, 0.3, 1, 0.69, 0.5, 0),
            (0.65, 0.1, 0.7, 0.69, 0.6, 1),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
        (
            (0.65, 0.3, 4, 0.69, 0.6, 0),
            (0.65, 0.3, 3, 0.68, 0.6, 0),
            (0.65, 0.3, 2, 0.68, 0.5, 0),
            (0.65, 0.3, 1, 0.65, 1.5, 1),
            (0.67, 0.4, 1, 0.65, 1.5, 1),
        ),
    )
}
