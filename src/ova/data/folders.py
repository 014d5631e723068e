"""A data set of image files in one folder per class."""

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ova.errors import BadInput

ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp", ".ppm")


@dataclass(frozen=True)
class Folder:
    """Image files below one folder, with a class number for each."""

    root: str
    names: np.ndarray  # bytes of the names below root: a million strings as one array
    y: np.ndarray
    classes: tuple[str, ...]
    digest: str  # SHA-256 of names and sizes; reading a hundred gigabytes only to hash is no use

    def __len__(self) -> int:
        return len(self.y)

    def name(self, row: int) -> str:
        """The path of one image."""
        return os.path.join(self.root, os.fsdecode(self.names[row]))

    def read(self, row: int) -> bytes:
        """The bytes of one image."""
        return Path(self.name(row)).read_bytes()


def images_in(folder: Path) -> list[tuple[str, int]]:
    """Names and sizes of the images of one folder, sorted."""
    with os.scandir(folder) as entries:
        return sorted(
            (entry.name, entry.stat().st_size)
            for entry in entries
            if entry.name.lower().endswith(ENDINGS) and entry.is_file()
        )


def scan(root: Path, classes: Sequence[str] | None = None) -> Folder:
    """All images of the class folders of `root`; with `classes` they must be exactly those."""
    found = sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
    if len(found) < 2:
        what = f"only {found[0]!r}" if found else "none"
        raise BadInput(f"{root}: at least two class folders are needed, here is {what}")
    if classes is not None and tuple(found) != tuple(classes):
        odd = sorted(set(found) ^ set(classes))
        raise BadInput(f"{root}: its classes are not those to train on ({', '.join(odd[:5])} ...)")
    names, y = [], []
    whole = hashlib.sha256()
    for k, name in enumerate(found):
        held = images_in(root / name)
        if not held:
            raise BadInput(f"{root / name}: there is no image in this class folder")
        for file, size in held:
            relative = os.fsencode(os.path.join(name, file))
            whole.update(relative + b" %d\n" % size)
            names.append(relative)
            y.append(k)
    return Folder(
        str(root), np.array(names), np.array(y, np.int64), tuple(found), whole.hexdigest()
    )
