"""Omniglot (Lake et al., 2015): 964 characters to learn, twenty drawings of each."""

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

import numpy as np
import torch

from ova.data.augmentation import normalise
from ova.data.drawings import LADDERS, changed, small
from ova.data.images import decode_all, merged
from ova.data.inventory import Item, item
from ova.data.sources import Blob, Found, Layout, Origin, locate
from ova.data.task import Examples, InMemory, Task
from ova.errors import BadInput
from ova.files import reading
from ova.predictions import NONE
from ova.predictions.sets import SetName

SIDE = 28
CHARACTERS = {"background": 964, "evaluation": 659}
DRAWERS = 20
TRAIN, VALIDATION, TEST = range(15), range(15, 16), range(16, 20)
NEAR = 100  # characters that `omniglot-near` keeps out
ALPHABETS, ASIDE = 20, 10  # outside; of these `omniglot-aside` sets half aside to choose by
MEAN, STD = (0.078,), (0.231,)  # of the training drawings


@dataclass(frozen=True)
class Drawings:
    """Drawings N x 105 x 105 as 0 or 1 (ink), with character and drawer of each."""

    ink: np.ndarray
    label: np.ndarray
    drawer: np.ndarray
    names: tuple[str, ...]  # alphabet/character

    @property
    def alphabets(self) -> tuple[str, ...]:
        """The alphabet of each character."""
        return tuple(name.partition("/")[0] for name in self.names)

    def part(self, labels: np.ndarray, drawers: Sequence[int]) -> "Drawings":
        """The drawings of those characters by those drawers; the characters are numbered anew."""
        rows = np.isin(self.label, labels) & np.isin(self.drawer, drawers)
        names = tuple(self.names[k] for k in labels)
        new = np.searchsorted(labels, self.label[rows])
        return Drawings(self.ink[rows], new, self.drawer[rows], names)


def checked(name: str, split: str, drawings: Drawings) -> Drawings:
    """The same drawings when every character has one by each of the twenty drawers."""
    count = CHARACTERS[split]
    cells = drawings.label.astype(np.int64) * DRAWERS + drawings.drawer
    if len(drawings.names) != count or not np.array_equal(
        np.sort(cells), np.arange(count * DRAWERS)
    ):
        raise BadInput(
            f"{name}: Omniglot's {split} set has {count} characters with {DRAWERS} drawings each, "
            f"here are {len(drawings.names)} characters with {len(cells)} drawings together"
        )
    return drawings


def read_npz(split: str, blobs: Sequence[Blob]) -> Drawings:
    """The compact file: one bit per pixel."""
    (blob,) = blobs
    with reading(blob.name, "the compact Omniglot"):
        with np.load(io.BytesIO(blob.data), allow_pickle=False) as held:
            bits, label, drawer, names = (
                held[f"{split}{part}"] for part in ("", "_label", "_drawer", "_name")
            )
        ink = np.unpackbits(bits, axis=1, count=105 * 105).reshape(-1, 105, 105)
        return checked(blob.name, split, Drawings(ink, label, drawer, tuple(map(str, names))))


def read_files(split: str, blobs: Sequence[Blob]) -> Drawings:
    """The official files: <alphabet>/<character>/<number>_<drawer>.png, black ink on white."""
    paths = [PurePosixPath(blob.name.split("!")[-1].replace("\\", "/")) for blob in blobs]
    characters = ["/".join(path.parts[-3:-1]) for path in paths]
    names = tuple(sorted(set(characters)))
    number = {name: k for k, name in enumerate(names)}
    where = str(Path(blobs[0].name).parents[2])
    ink = (decode_all(where, [blob.data for blob in blobs])[:, 0] < 128).astype(np.uint8)
    label = np.array([number[name] for name in characters])
    try:
        drawer = np.array([int(path.stem.split("_")[-1]) - 1 for path in paths])
    except ValueError as error:
        raise BadInput(f"{where}: a drawing is not called <number>_<drawer>.png") from error
    return checked(where, split, Drawings(ink, label, drawer, names))


def origin(split: str) -> Origin[Drawings]:
    """Where a split can come from."""
    files = f"images_{split}/*/*/*.png"
    return Origin(
        name=f"Omniglot {split}",
        folders=("omniglot", "omniglot-py", "omniglot/python", "."),
        layouts=(
            Layout(("omniglot.npz",), partial(read_npz, split)),
            Layout((files,), partial(read_files, split), f"images_{split}.zip"),
        ),
        how=f"download python/images_{split}.zip from the repository brendenlake/omniglot",
    )


def in_memory(drawings: Drawings, outside: bool = False) -> InMemory:
    """The drawings at 28 x 28, with their characters as targets or with none."""
    y = torch.from_numpy(drawings.label.astype(np.int64))
    x = torch.from_numpy(small(drawings.ink, SIDE))[:, None]
    return InMemory(x, torch.full_like(y, NONE) if outside else y)


def shifted(drawings: Drawings, ladder: str, severity: int) -> InMemory:
    """The drawings changed by one step of a ladder."""
    x = torch.from_numpy(changed(drawings.ink, ladder, severity, SIDE))[:, None]
    return InMemory(x, torch.from_numpy(drawings.label.astype(np.int64)))


def strange(found: Found[Drawings], alphabets: range) -> InMemory:
    """The characters outside, those of some alphabets in a random order of all."""
    drawings = found.read()
    names, of_each = np.unique(drawings.alphabets, return_inverse=True)
    order = np.random.default_rng(0).permutation(len(names))
    labels = np.flatnonzero(np.isin(of_each, order[alphabets.start : alphabets.stop]))
    return in_memory(drawings.part(labels, range(DRAWERS)), outside=True)


def load(data_dir: Path | None, near: int = 0, aside: int = 0) -> Task:
    """Drawers 1-15 to train, 16 to validate, 17-20 to test; outside: the evaluation characters."""
    background, evaluation = (locate(origin(split), data_dir) for split in CHARACTERS)
    whole = background.read()
    order = np.random.default_rng(0).permutation(len(whole.names))
    kept, left = np.sort(order[near:]), np.sort(order[:near])
    test = whole.part(kept, TEST)
    evaluations: dict[str, Callable[[], Examples]] = {
        "test": partial(in_memory, test),
        **{
            SetName.shift(ladder, severity): partial(shifted, test, ladder, severity)
            for ladder, steps in LADDERS.items()
            for severity in range(1, len(steps) + 1)
        },
        SetName.ood("evaluation"): partial(strange, evaluation, range(aside, ALPHABETS)),
    }
    if aside:
        evaluations[SetName.to_choose("evaluation")] = partial(strange, evaluation, range(aside))
    if near:
        evaluations[SetName.ood("near")] = partial(
            in_memory, whole.part(left, range(DRAWERS)), outside=True
        )
    return Task(
        classes=test.names,
        shape=(1, SIDE, SIDE),
        train=in_memory(whole.part(kept, TRAIN)),
        validation=in_memory(whole.part(kept, VALIDATION)),
        evaluations=evaluations,
        prepare=normalise(MEAN, STD),
        sources=merged(background, evaluation),
    )


def near(data_dir: Path | None) -> Task:
    """The same with 864 characters to learn; outside also 100 characters of the same alphabets."""
    return load(data_dir, NEAR)


def aside(data_dir: Path | None) -> Task:
    """The same characters to learn; of the twenty alphabets outside, ten are to choose by."""
    return load(data_dir, aside=ASIDE)


def inventory(data_dir: Path | None) -> Iterator[Item]:
    """What is there of both sets of characters."""

    def measure(found: Found[Drawings]) -> tuple[int, int]:
        held = found.read()
        return len(held.label), len(held.names)

    for split in CHARACTERS:
        yield item(origin(split), data_dir, measure)
