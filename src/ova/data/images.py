"""Data sets of small images: decoded once, cached as uint8 arrays, checked against the published ones."""

import hashlib
import io
import logging
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from ova.data.decoding import decode
from ova.data.sources import Blob, Found, cache_dir
from ova.errors import BadInput
from ova.files import cores, reading, write_beside

FORMAT = 1  # of the cached arrays; a new number forgets the old ones
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Images:
    """Images N x C x H x W as uint8, and a class number for each."""

    x: np.ndarray
    y: np.ndarray

    def digest(self) -> str:
        """The SHA-256 of pixels and classes."""
        parts = (np.ascontiguousarray(self.x), np.ascontiguousarray(self.y, dtype="<i8"))
        whole = hashlib.sha256(repr(self.x.shape).encode())
        for part in parts:
            whole.update(part.data)
        return whole.hexdigest()


@dataclass(frozen=True)
class Expected:
    """What a split of a published data set must be."""

    count: int
    classes: int
    shape: tuple[int, int, int] = (3, 32, 32)
    digests: frozenset[str] = frozenset()  # empty where more than one copy is in use


def decode_all(name: str, encoded: Sequence[bytes]) -> np.ndarray:
    """All images of one size, from any file format, as N x 3 x H x W."""
    with ThreadPoolExecutor(cores()) as pool:
        images = list(pool.map(_decoded, encoded, chunksize=256))
    bad = [row for row, image in enumerate(images) if image is None]
    if bad:
        rows = ", ".join(map(str, bad[:10])) + (", ..." if len(bad) > 10 else "")
        raise BadInput(f"{name}: {len(bad)} of {len(images)} images are unreadable (rows {rows})")
    whole = [image for image in images if image is not None]
    sizes = {image.shape for image in whole}
    if len(sizes) != 1:
        raise BadInput(f"{name}: images of one size expected, found {sorted(sizes)[:5]}")
    return np.stack([image.transpose(2, 0, 1) for image in whole])


def _decoded(data: bytes) -> np.ndarray | None:
    try:
        return decode(data)
    except BadInput:
        return None


def read_table(name: str, table: Any, image: str, label: str) -> Images:
    """The images of an Arrow table as the hub keeps them: a struct with the encoded bytes."""
    for column in (image, label):
        if column not in table.column_names:
            have = ", ".join(table.column_names)
            raise BadInput(f"{name}: there is no column {column!r}; the columns are {have}")
    encoded = [row["bytes"] or b"" for row in table[image].to_pylist()]
    return Images(decode_all(name, encoded), np.asarray(table[label].to_pylist(), dtype=np.int64))


def read_parquet(image: str, label: str) -> Callable[[Sequence[Blob]], Images]:
    """A reader of Parquet files with those two columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    def read(blobs: Sequence[Blob]) -> Images:
        tables = []
        for name, data in blobs:
            with reading(name, "a whole Parquet file"):
                tables.append(pq.read_table(io.BytesIO(data)))
        names = ", ".join(blob.name for blob in blobs)
        return read_table(names, pa.concat_tables(tables), image, label)

    return read


def load_images(found: Found[Images], expected: Expected, canonical: bool = False) -> Images:
    """The checked images of a split, decoded the first time and read from the cache afterwards.

    `canonical` puts them in an order that depends on their content alone: the files of one data
    set are in different orders in different distributions, and a seed should mean one split.
    """
    key = repr((FORMAT, found.name, canonical, sorted(found.sources.values())))
    path = cache_dir() / "arrays" / f"{hashlib.sha256(key.encode()).hexdigest()}.safetensors"
    images = _cached(path)
    if images is None:
        images = check(found.read(), found, expected)
        images = in_order(images) if canonical else images
        if expected.digests and images.digest() not in expected.digests:
            raise BadInput(
                f"{_files(found)}: the pixels or labels differ from the published {found.name}; "
                "get a fresh copy"
            )
        _keep(path, images)
    return images


def check(images: Images, found: Found[Images], expected: Expected) -> Images:
    """The same images, or an error that names the files and what is wrong with them."""
    if len(images.x) != expected.count or len(images.y) != expected.count:
        raise BadInput(
            f"{_files(found)}: {found.name} has {expected.count} images, "
            f"here are {len(images.x)} with {len(images.y)} labels"
        )
    if images.x.shape[1:] != expected.shape or images.x.dtype != np.uint8:
        raise BadInput(
            f"{_files(found)}: images of {expected.shape} expected, here {images.x.shape[1:]}"
        )
    held = np.unique(images.y)
    if not np.array_equal(held, np.arange(expected.classes)):
        raise BadInput(
            f"{_files(found)}: {found.name} has the labels 0 to {expected.classes - 1}, "
            f"here are {len(held)} from {held.min()} to {held.max()}"
        )
    return images


def _files(found: Found[Images]) -> str:
    return ", ".join(found.sources)


def in_order(images: Images) -> Images:
    """The same images sorted by a digest of each."""
    keys = [hashlib.blake2b(x.tobytes(), digest_size=16).digest() for x in images.x]
    order = sorted(range(len(keys)), key=lambda row: (keys[row], images.y[row]))
    return Images(images.x[order], images.y[order])


def _cached(path: Any) -> Images | None:
    """The kept arrays when they are whole, None when they have to be made (again)."""
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return None
    try:
        with safe_open(path, "np") as file:
            images = Images(file.get_tensor("x"), file.get_tensor("y"))
            if images.digest() == (file.metadata() or {}).get("sha256"):
                return images
    except (SafetensorError, OSError, ValueError):
        pass
    log.warning("%s is damaged and will be made again", path)
    return None


def _keep(path: Any, images: Images) -> None:
    """Write the arrays to the cache; without a place for it every run just decodes again."""
    from safetensors.numpy import save

    arrays = {"x": np.ascontiguousarray(images.x), "y": np.ascontiguousarray(images.y)}
    try:
        with write_beside(path) as beside:
            beside.write_bytes(save(arrays, {"sha256": images.digest()}))
    except OSError as error:
        log.warning("the decoded images could not be kept in %s (%s)", path, error)


def hold_out(y: np.ndarray, count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers to train on and `count` to validate on, as many of each class.

    >>> train, validation = hold_out(np.array([0, 1, 0, 1, 0, 1]), 2)
    >>> len(train), sorted(np.array([0, 1, 0, 1, 0, 1])[validation])
    (4, [np.int64(0), np.int64(1)])
    """
    draw = np.random.default_rng(seed)
    classes = np.unique(y)
    each = count // len(classes)
    shuffled = [draw.permutation(np.flatnonzero(y == k)) for k in classes]
    kept = np.sort(np.concatenate([rows[:each] for rows in shuffled]))
    return np.setdiff1d(np.arange(len(y)), kept), kept


def merged(*founds: Found[Any]) -> Mapping[str, str]:
    """The sources of several splits together."""
    return {name: digest for found in founds for name, digest in found.sources.items()}
