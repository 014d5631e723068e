"""Frost textures: the originals where they are on disk, otherwise ones grown here."""

import hashlib
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ova.errors import BadInput

# The reference has six files and draws from the first five.
ORIGINALS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


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


def find_textures(data_dir: Path | None) -> Textures:
    """The originals in `<data dir>/frost/` when all are there, otherwise generated ones."""
    folder = None if data_dir is None else Path(data_dir) / "frost"
    if folder is None or not all((folder / name).is_file() for name in ORIGINALS):
        return generated_textures()
    return original_textures(folder)


@lru_cache(maxsize=4)
def original_textures(folder: Path) -> Textures:
    """The five original files the reference draws from."""
    return Textures("original", tuple(read_rgb(folder / name) for name in ORIGINALS))


def read_rgb(path: Path) -> NDArray[np.uint8]:
    """An image file as RGB."""
    picture = cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR)
    if picture is None:
        raise BadInput(f"cannot read the frost texture {path}; restore it or remove its folder")
    return np.ascontiguousarray(picture[..., ::-1], np.uint8)


@cache
def generated_textures() -> Textures:
    """Five textures of our own: ridged noise at many scales, brighter towards its ridges."""
    return Textures("generated", tuple(grow(number) for number in range(5)))


def grow(number: int, height: int = 400, width: int = 600) -> NDArray[np.uint8]:
    """Ice grows in ridges: fold smooth noise at zero, and sum it over octaves."""
    random = np.random.Generator(np.random.Philox(number))
    field = np.zeros((height, width), np.float32)
    for octave in range(2, 8):
        rows, columns = 2**octave + 2, int(2**octave * width / height) + 2
        noise = random.standard_normal((rows, columns), np.float32)
        smooth = cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
        field += 2.0 ** (-0.6 * octave) * (1 - np.minimum(np.abs(smooth), 2))
    field = (field - field.mean()) / field.std()
    tint = np.array([0.93, 1.0, 1.07], np.float32) * (1 + 0.06 * (number - 2))
    return np.clip(150 * tint + 52 * field[..., None], 0, 255).astype(np.uint8)
