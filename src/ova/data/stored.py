"""Images that do not fit into memory: read, decoded, cropped and corrupted in worker processes."""

import hashlib
import io
import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import torch
from torch import Tensor

from ova.data.shift import Change
from ova.errors import BadInput
from ova.files import cores

Cut = Literal["random", "centre", "whole"]
UNREADABLE = 0.01  # the share of images above which a set is not worth using
GREY = 128
log = logging.getLogger(__name__)


class Store(Protocol):
    """Encoded images by number."""

    def __len__(self) -> int: ...
    def name(self, row: int) -> str: ...
    def read(self, row: int) -> bytes: ...


@dataclass(frozen=True)
class Stored:
    """Examples of a store: uint8 images 3 x size x size, made by worker processes.

    Random crops are drawn from the row numbers of their batch: the same plan gives the same crops,
    so a resumed run continues exactly. An unreadable image becomes a grey one, which keeps every
    row in its place; it is named in the log, and more than one in a hundred is an error.
    """

    store: Store
    rows: np.ndarray  # which images of the store
    targets: np.ndarray
    size: int
    cut: Cut
    change: Change | None = None  # a corruption
    workers: int = 0
    seed: int = 0
    unreadable: set[int] = field(default_factory=set, compare=False)

    @property
    def y(self) -> Tensor:
        """The targets."""
        return torch.from_numpy(self.targets)

    @property
    def lengths(self) -> None:
        """All images have one size."""
        return None

    def __len__(self) -> int:
        return len(self.rows)

    def batches(self, plan: Sequence[Tensor]) -> Iterator[tuple[Tensor, Tensor]]:
        """For each tensor of row numbers, the images and their targets."""
        from torch.utils.data import DataLoader

        workers = min(self.workers, len(plan))
        loader: DataLoader[Any] = DataLoader(
            self,  # type: ignore[arg-type]  # it has what a map-style data set needs
            batch_sampler=[rows.tolist() for rows in plan],
            num_workers=workers,
            collate_fn=collate,
            prefetch_factor=4 if workers else None,
        )
        for rows, (x, bad) in zip(plan, loader, strict=True):
            self.note(bad)
            yield x, self.y[rows]

    def note(self, bad: Sequence[tuple[int, str]]) -> None:
        """Name each unreadable image once, and stop when they are too many."""
        for row, reason in bad:
            if row not in self.unreadable:
                self.unreadable.add(row)
                log.warning("unreadable image %s (%s)", self.store.name(row), reason)
        if len(self.unreadable) > UNREADABLE * len(self):
            names = ", ".join(self.store.name(row) for row in sorted(self.unreadable)[:10])
            raise BadInput(
                f"{len(self.unreadable)} of {len(self)} images are unreadable, more than 1 %: "
                f"{names}; replace or delete them"
            )

    def __getitems__(self, batch: list[int]) -> list[tuple[int, np.ndarray | str]]:
        """What a worker makes of one batch: for each row its image, or why there is none."""
        digest = hashlib.blake2b(np.asarray(batch, "<i8").tobytes(), digest_size=8).digest()
        draw = np.random.default_rng([self.seed, int.from_bytes(digest, "little")])
        made = [(int(self.rows[i]), self.image(int(self.rows[i]), draw)) for i in batch]
        return made if self.change is None else self.corrupted(batch, made, self.change)

    def image(self, row: int, draw: np.random.Generator) -> np.ndarray | str:
        """One image, size x size x 3, or the reason why it cannot be had."""
        try:
            return cut(self.store.read(row), self.size, self.cut, draw)
        except Exception as error:  # a damaged image can raise nearly anything
            return f"{type(error).__name__}: {error}"

    def corrupted(
        self, batch: list[int], made: list[tuple[int, np.ndarray | str]], change: Change
    ) -> list[tuple[int, np.ndarray | str]]:
        """The same images corrupted, each by its row number."""
        good = [i for i, (_, image) in enumerate(made) if not isinstance(image, str)]
        if not good:
            return made
        images = np.stack([np.asarray(made[i][1]) for i in good])
        changed = change(images, np.asarray([batch[i] for i in good]), workers=1)
        for i, image in zip(good, changed, strict=True):
            made[i] = (made[i][0], image)
        return made


def collate(made: list[tuple[int, np.ndarray | str]]) -> tuple[Tensor, list[tuple[int, str]]]:
    """One tensor B x 3 x H x W, and what could not be read."""
    bad = [(row, image) for row, image in made if isinstance(image, str)]
    good = next((image for _, image in made if not isinstance(image, str)), None)
    if good is None:
        raise BadInput(f"no image of a batch could be read; the first reason: {bad[0][1]}")
    grey = np.full_like(good, GREY)
    stack = np.stack([grey if isinstance(image, str) else image for _, image in made])
    return torch.from_numpy(np.ascontiguousarray(stack.transpose(0, 3, 1, 2))), bad


def inception_box(
    width: int, height: int, draw: np.random.Generator
) -> tuple[float, float, float, float]:
    """A random part of the image: 8 to 100 % of its area, sides 3:4 to 4:3 (Szegedy et al., 2015)."""
    for _ in range(10):
        area = width * height * draw.uniform(0.08, 1.0)
        ratio = np.exp(draw.uniform(np.log(3 / 4), np.log(4 / 3)))
        w, h = round((area * ratio) ** 0.5), round((area / ratio) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = draw.integers(width - w + 1), draw.integers(height - h + 1)
            return float(left), float(top), float(left + w), float(top + h)
    return centre_box(width, height, 1.0)


def centre_box(width: int, height: int, share: float) -> tuple[float, float, float, float]:
    """The square in the middle with that share of the shorter side.

    >>> centre_box(300, 200, 0.5)
    (100.0, 50.0, 200.0, 150.0)
    """
    side = share * min(width, height)
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def cut(data: bytes, size: int, how: Cut, draw: np.random.Generator) -> np.ndarray:
    """The image as size x size x 3: a random part mirrored half of the time, the centre, or all."""
    from PIL import Image

    with Image.open(io.BytesIO(data)) as image:
        width, height = image.size
        box = box_of(width, height, how, draw)
        if how == "random":
            # JPEG decodes at 1/2, 1/4 or 1/8 for a fraction of the time; the crop stays sharp.
            fit = min(box[2] - box[0], box[3] - box[1]) / size
            step = next((s for s in (8, 4, 2) if fit >= s), 1)
            image.draft("RGB", (width // step, height // step))
        sx, sy = image.size[0] / width, image.size[1] / height
        scaled = (box[0] * sx, box[1] * sy, box[2] * sx, box[3] * sy)
        part = image.convert("RGB").resize((size, size), Image.Resampling.BILINEAR, box=scaled)
    pixels = np.asarray(part)
    return pixels[:, ::-1] if how == "random" and draw.random() < 0.5 else pixels


def box_of(
    width: int, height: int, how: Cut, draw: np.random.Generator
) -> tuple[float, float, float, float]:
    """The part of the image to keep; of the centre the customary 224 of 256."""
    if how == "random":
        return inception_box(width, height, draw)
    return centre_box(width, height, 224 / 256) if how == "centre" else (0, 0, width, height)


def workers_here() -> int:
    """How many worker processes this process should have: its share of the machine's cores."""
    asked = os.environ.get("OVA_WORKERS")
    if asked is not None:
        if not asked.isdigit():
            raise BadInput(f"OVA_WORKERS must be a number of processes, not {asked!r}")
        return int(asked)
    return max(1, cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
