"""Corrupted copies of a test set: made as they are asked for, or the published arrays."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.data.sources import places
from ova.data.task import Examples, InMemory
from ova.errors import BadInput
from ova.files import reading, sha256
from ova.predictions.sets import SetName

SEVERITIES = range(1, 6)


@dataclass(frozen=True, eq=False)
class Change:
    """One corruption at one severity, with all that its result depends on."""

    corruption: str
    severity: int
    constants: str
    textures: Any  # of frost

    def __call__(self, images: np.ndarray, ids: np.ndarray, workers: int | None) -> np.ndarray:
        """The images N x H x W x 3 corrupted, each by its id."""
        from ova.corruptions import corrupt

        return corrupt(
            images,
            self.corruption,
            self.severity,
            ids=ids,
            constants=self.constants,
            textures=self.textures,
            workers=workers,
        )


@dataclass(frozen=True)
class Corrupted:
    """Clean images that are corrupted batch by batch, each by its row number.

    So the batches, their order and the number of processes change nothing.
    """

    clean: InMemory
    change: Change

    @property
    def y(self) -> Tensor:
        """The targets of the clean images."""
        return self.clean.y

    @property
    def lengths(self) -> None:
        """All images have one size."""
        return None

    def __len__(self) -> int:
        return len(self.clean)

    def batches(self, plan: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """For each tensor of row numbers, the corrupted images and their targets."""
        for rows in plan:
            images = self.clean.x[rows].permute(0, 2, 3, 1).contiguous().numpy()
            changed = torch.from_numpy(self.change(images, rows.numpy(), None))
            yield changed.permute(0, 3, 1, 2).contiguous(), self.clean.y[rows]


def changes(constants: str, data_dir: Path | None) -> tuple[dict[SetName, Change], dict[str, str]]:
    """Every corruption at every severity by its name `shift/...`, and the hash of its textures."""
    from ova.corruptions import CORRUPTIONS
    from ova.data.frost import frost_textures

    textures = frost_textures(data_dir)
    made = {
        SetName.shift(name, severity): Change(name, severity, constants, textures)
        for name in CORRUPTIONS
        for severity in SEVERITIES
    }
    return made, {f"frost textures ({textures.source})": textures.sha256}


def generated(
    test: Callable[[], InMemory], data_dir: Path | None
) -> tuple[dict[str, Callable[[], Examples]], dict[str, str]]:
    """One entry for each corruption and severity, made from the clean test set when asked for."""

    def make(change: Change) -> Examples:
        return Corrupted(test(), change)

    made, sources = changes("cifar", data_dir)
    return {name: partial(make, change) for name, change in made.items()}, sources


def arrays(folder: str, data_dir: Path | None) -> dict[str, Path]:
    """The published arrays (`<type>.npy`) of a folder by their type, from the first place with any."""
    from ova.corruptions import CORRUPTIONS

    for place in places(data_dir):
        files = {name: place / folder / f"{name}.npy" for name in CORRUPTIONS}
        there = {name: file for name, file in files.items() if file.is_file()}
        if there:
            return there
    return {}


def published(
    folder: str, test: Callable[[], InMemory], data_dir: Path | None
) -> tuple[dict[str, Callable[[], Examples]], dict[str, str]] | None:
    """One entry for each published type and severity, None where nothing is."""
    there = arrays(folder, data_dir)
    entries: dict[str, Callable[[], Examples]] = {
        SetName.shift(name, severity): partial(read_severity, file, severity, test)
        for name, file in there.items()
        for severity in SEVERITIES
    }
    sources = {f"{folder}/{file.name}": sha256(file) for file in there.values()}
    return (entries, sources) if there else None


def read_severity(file: Path, severity: int, test: Callable[[], InMemory]) -> InMemory:
    """One severity of a published array; its rows are those of the test set, its labels too."""
    clean = test()
    n, c, h, w = clean.x.shape
    whole = read_array(file, (len(SEVERITIES) * n, h, w, c))
    labels = file.with_name("labels.npy")
    if labels.is_file():
        y = read_array(labels, (len(SEVERITIES) * n,))[:n]
        if not np.array_equal(y, clean.y.numpy()):
            raise BadInput(f"{labels}: the labels are not those of the test set, in its order")
    part = np.array(whole[(severity - 1) * n : severity * n])
    return InMemory(torch.from_numpy(part).permute(0, 3, 1, 2).contiguous(), clean.y)


def read_array(file: Path, shape: tuple[int, ...]) -> np.ndarray:
    """A .npy of uint8 (or whole numbers) in that shape, not yet in memory; pickles are refused."""
    with reading(file, "an array"):
        array: np.ndarray = np.load(file, mmap_mode="r", allow_pickle=False)
    if array.shape != shape or array.dtype.kind not in "ui":
        raise BadInput(f"{file}: {shape} whole numbers expected, here {array.shape} {array.dtype}")
    return array
