"""Corrupted copies of a folder of images, in the layout of ImageNet-C: type/severity/path."""

import hashlib
import io
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from PIL import Image

from ova.corruptions.corruption import Images
from ova.corruptions.table import SMALLEST, corrupt
from ova.data.corrupted.record import How, begin, complete, note
from ova.data.decoding import read_rgb
from ova.errors import BadInput
from ova.files import cores, sha256, write_beside

ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".bmp", ".ppm", ".tif", ".tiff")
SUMS = "SHA256SUMS"
EIGHT_BITS = ("RGB", "L", "P", "1", "RGBA", "LA", "PA", "CMYK", "YCbCr")


@dataclass(frozen=True)
class Picture:
    """One readable image of a folder."""

    name: str  # path below the folder, with slashes
    target: str  # the same for the result, ending in .png
    id: int  # from the name, so that more files in the folder change nothing
    mode: str
    size: tuple[int, int]
    sha256: str


@dataclass(frozen=True)
class Survey:
    """What a folder holds: readable images, and why the others are not."""

    root: Path
    pictures: tuple[Picture, ...]
    problems: dict[str, str]

    @property
    def converted(self) -> int:
        """How many are not RGB and are converted to it."""
        return sum(picture.mode != "RGB" for picture in self.pictures)

    @property
    def digest(self) -> str:
        """The hash of all names and contents."""
        lines = (f"{picture.sha256}  {picture.name}\n" for picture in self.pictures)
        return hashlib.sha256(os.fsencode("".join(lines))).hexdigest()


def survey(root: Path) -> Survey:
    """Read every image of a folder once; one that cannot be used is named, not fatal."""
    names = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*")
        if path.suffix.lower() in ENDINGS and path.is_file()
    )
    if not names:
        raise BadInput(f"{root} has no images ({' '.join(ENDINGS)})")
    aims = targets(names)
    with ThreadPoolExecutor(cores()) as pool:
        found = list(pool.map(lambda name: look(root, name, aims[name]), names))
    pictures = tuple(one for one in found if isinstance(one, Picture))
    problems = {n: one for n, one in zip(names, found, strict=True) if isinstance(one, str)}
    if not pictures:
        raise BadInput(f"none of the {len(names)} images in {root} can be used: {some(problems)}")
    return Survey(root, pictures, problems)


def targets(names: Sequence[str]) -> dict[str, str]:
    """A name ending in .png for each, no two alike: without the old ending unless others need that.

    >>> targets(["a.png", "a.jpg", "a.jpg.bmp", "b.jpg"])  # doctest: +NORMALIZE_WHITESPACE
    {'a.png': 'a.png.png', 'a.jpg': 'a.jpg.png', 'a.jpg.bmp': 'a.jpg.bmp.png', 'b.jpg': 'b.png'}
    """
    stems = {name: name.rsplit(".", 1)[0] for name in names}
    # Some file systems take A and a for the same.
    taken = Counter(each.casefold() for each in (*stems.values(), *names))
    return {n: f"{n if taken[stem.casefold()] > 1 else stem}.png" for n, stem in stems.items()}


def some(problems: dict[str, str]) -> str:
    """The first few problems in one line."""
    return "; ".join(f"{name}: {why}" for name, why in list(problems.items())[:3])


def look(root: Path, name: str, target: str) -> Picture | str:
    """The picture of that name, or why it cannot be used."""
    try:
        data = (root / name).read_bytes()
        with Image.open(io.BytesIO(data)) as image:
            mode, size = image.mode, image.size
            image.load()
    except Exception as error:  # a damaged file can raise nearly anything
        return f"unreadable ({type(error).__name__}: {error})"
    if mode not in EIGHT_BITS:
        return f"its values are not 8 bits (mode {mode})"
    if min(size) < SMALLEST:
        return f"{size[0]} x {size[1]} px; at least {SMALLEST} px are needed"
    number = hashlib.blake2b(os.fsencode(name), digest_size=8).digest()
    digest = hashlib.sha256(data).hexdigest()
    return Picture(name, target, int.from_bytes(number, "big") >> 1, mode, size, digest)


def write_tree(
    found: Survey, source: str, out: Path, types: Sequence[str], how: How
) -> Iterator[tuple[str, int]]:
    """Write `<type>/<severity>/<path>.png`; yields the type and how many more are done.

    Each severity has a file SHA256SUMS (for `sha256sum -c`), whose hash is in the manifest. A
    severity that is complete is not made again; in one that was interrupted, neither is a file.
    """
    manifest = begin(out, source, found.digest, how)
    for name in types:
        for severity in how.severities:
            part = f"{name}/{severity}/{SUMS}"
            if complete(out, manifest, part):
                yield name, len(found.pictures)
                continue
            lines = []
            for line in write_part(found, out, name, severity, how):
                lines.append(line)
                yield name, 1
            with write_beside(out / part) as beside:
                beside.write_bytes(os.fsencode("".join(lines)))
            note(out, manifest, part)


def write_part(found: Survey, out: Path, name: str, severity: int, how: How) -> Iterator[str]:
    """All images of one type and severity; yields for each its line of SHA256SUMS."""

    def make(picture: Picture) -> str:
        path = out / name / str(severity) / picture.target
        if not path.exists():
            spoilt = corrupt(
                read_rgb(found.root / picture.name)[None],
                name,
                severity,
                seed=how.seed,
                ids=[picture.id],
                constants=how.constants,
                textures=how.textures,
                workers=1,
            )
            write_png(path, spoilt[0])
        return sum_line(sha256(path), picture.target)

    pool = ThreadPoolExecutor(cores())
    try:
        yield from pool.map(make, found.pictures)
    finally:
        pool.shutdown(cancel_futures=True)


def sum_line(digest: str, name: str) -> str:
    r"""A line of SHA256SUMS; a name that would break it is escaped as `sha256sum` does.

    >>> sum_line("0f", "a.png"), sum_line("0f", "a\nb.png")
    ('0f  a.png\n', '\\0f  a\\nb.png\n')
    """
    escaped = name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return f"{digest}  {name}\n" if escaped == name else f"\\{digest}  {escaped}\n"


def write_png(path: Path, image: Images) -> None:
    """Write an H x W x 3 image without loss, whole or not at all."""
    fast = [cv2.IMWRITE_PNG_COMPRESSION, 1]
    data = cv2.imencode(".png", np.ascontiguousarray(image[..., ::-1]), fast)[1]
    with write_beside(path) as beside:
        beside.write_bytes(data.tobytes())
