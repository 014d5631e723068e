"""Frost textures: the originals where they are on disk, otherwise generated ones."""

from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.textures import Textures, generated_textures
from ova.data.decoding import decode
from ova.data.sources import places
from ova.errors import BadInput

# The reference has six files and draws from the first five.
ORIGINALS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def frost_textures(data_dir: Path | None) -> Textures:
    """The textures of the first place for data that has a folder `frost`."""
    return find_textures(next((p for p in places(data_dir) if (p / "frost").is_dir()), None))


def find_textures(data_dir: Path | None) -> Textures:
    """The originals in `<data dir>/frost/` when all are there, otherwise generated ones."""
    folder = None if data_dir is None else Path(data_dir) / "frost"
    if folder is None or not all((folder / name).is_file() for name in ORIGINALS):
        return generated_textures()
    return original_textures(folder)


@lru_cache(maxsize=4)
def original_textures(folder: Path) -> Textures:
    """The five original files the reference draws from."""
    return Textures("original", tuple(read_texture(folder / name) for name in ORIGINALS))


def read_texture(path: Path) -> NDArray[np.uint8]:
    """One original as RGB."""
    try:
        return np.ascontiguousarray(decode(path.read_bytes()))
    except BadInput as error:
        problem = f"the frost texture {path} is {error}; restore it or remove its folder"
        raise BadInput(problem) from None
