"""Corrupted sets as arrays, in the layout of CIFAR-10-C: a file per type, severities stacked."""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ova.corruptions.corruption import Images
from ova.corruptions.table import corrupt
from ova.data.corrupted.record import How, begin, complete, note
from ova.files import write_beside

CHUNK = 1 << 22  # pixels made at a time: 12 MB of images, however large the set is


def write_stacks(
    images: Images,
    labels: NDArray[np.integer],
    source: str,
    out: Path,
    types: Sequence[str],
    how: How,
) -> Iterator[tuple[str, int]]:
    """Write `<type>.npy` for each type and `labels.npy`; yields the type and how many more are done.

    A type that is complete is not made again, and one that was interrupted begins anew.
    """
    digest = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    manifest = begin(out, source, digest, how)
    if not complete(out, manifest, "labels.npy"):
        small = np.uint8 if labels.max(initial=0) < 256 else np.int64
        with write_beside(out / "labels.npy") as beside, beside.open("wb") as file:
            np.save(file, np.tile(labels, len(how.severities)).astype(small))
        note(out, manifest, "labels.npy")
    for name in types:
        if complete(out, manifest, f"{name}.npy"):
            yield name, len(images) * len(how.severities)
            continue
        for count in write_stack(images, out / f"{name}.npy", name, how):
            yield name, count
        note(out, manifest, f"{name}.npy")


def write_stack(images: Images, path: Path, name: str, how: How) -> Iterator[int]:
    """One type: all images at the first severity, then all at the next; yields counts as it goes."""
    total, height, width, _ = images.shape
    step = max(1, CHUNK // (height * width))
    shape = (len(how.severities) * total, height, width, 3)
    header = {"descr": "|u1", "fortran_order": False, "shape": shape}
    # Written from front to back: where the disk is full, a map of the file in memory is a crash.
    with write_beside(path) as beside, beside.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for severity in how.severities:
            for start in range(0, total, step):
                ids = np.arange(start, min(start + step, total))
                spoilt = corrupt(
                    images[ids[0] : ids[-1] + 1],
                    name,
                    severity,
                    seed=how.seed,
                    ids=ids,
                    constants=how.constants,
                    textures=how.textures,
                )
                file.write(np.ascontiguousarray(spoilt).data)
                yield len(ids)
