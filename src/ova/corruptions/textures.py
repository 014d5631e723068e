"""Frost textures grown here: needles of ice on clouded glass."""

import hashlib
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Textures:
    """Pictures of frost, each H x W x 3, and where they are from."""

    source: str  # "original" or "generated"
    pictures: tuple[NDArray[np.uint8], ...]

    @property
    def sha256(self) -> str:
        """The hash of all pixels."""
        digest = hashlib.sha256()
        for picture in self.pictures:
            digest.update(f"{picture.shape}".encode() + picture.tobytes())
        return digest.hexdigest()


# Mean colour and contrast of each texture of our own: the originals' range, so that results compare.
GROWN = (
    ((85, 150, 165), 28),
    ((200, 205, 214), 25),
    ((196, 206, 216), 25),
    ((138, 153, 166), 33),
    ((112, 123, 135), 45),
)


@cache
def generated_textures() -> Textures:
    """Five textures of our own, always the same: needles of ice on clouded glass."""
    pictures = (grow(number, *look) for number, look in enumerate(GROWN))
    return Textures("generated", tuple(pictures))


def grow(number: int, colour: tuple[int, int, int], contrast: float) -> NDArray[np.uint8]:
    """Clouds of several sizes, and thousands of needles in bundles."""
    random = np.random.Generator(np.random.Philox(number))
    height, width = 400, 600
    field = needles(random, height, width)
    for octave in range(3, 8):
        noise = random.standard_normal((2**octave, 2**octave * 3 // 2), np.float32)
        cloud = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
        field += 2.0 ** (-0.5 * octave) * cloud
    field = (field - field.mean()) / field.std()
    picture = np.array(colour, np.float32) + contrast * field[..., None]
    return np.asarray(np.clip(picture, 0, 255), np.uint8)


def needles(random: np.random.Generator, height: int, width: int) -> NDArray[np.float32]:
    """Bundles of thin bright and dark lines, each bundle around an angle of its own."""
    field = np.zeros((height, width), np.float32)
    for _ in range(400):
        start, angle = random.uniform(0, (width, height)), random.uniform(0, 2 * np.pi)
        for turn in random.uniform(-0.7, 0.7, 9):
            reach = random.uniform(6, 45) * np.array([np.cos(angle + turn), np.sin(angle + turn)])
            ends = [tuple(int(v) for v in point) for point in (start, start + reach)]
            cv2.line(field, ends[0], ends[1], random.normal(0.2, 1.0), 2)
            start = start + reach / 3
    return np.asarray(cv2.GaussianBlur(field, (0, 0), 1.2), np.float32)
