"""CIFAR-10 and CIFAR-100 (Krizhevsky, 2009), with their corrupted and out-of-distribution sets."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch

from ova.data import shift, svhn
from ova.data.augmentation import CropFlip, normalise
from ova.data.hub import Hub
from ova.data.images import (
    Expected,
    Images,
    hold_out,
    load_images,
    merged,
    read_parquet,
    read_table,
)
from ova.data.inventory import Item, item
from ova.data.names import CIFAR10, CIFAR100
from ova.data.pickles import read_pickle
from ova.data.sources import Blob, Found, Layout, Origin, locate
from ova.data.task import Examples, InMemory, Task
from ova.errors import BadInput
from ova.files import sha256
from ova.predictions import NONE
from ova.predictions.sets import SetName

VALIDATION = 5_000
PIXELS = 3 * 32 * 32
MEAN, STD = (0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)  # of the paper's released code


@dataclass(frozen=True)
class Cifar:
    """What differs between the two."""

    name: str
    title: str
    classes: tuple[str, ...]
    config: str  # of the hub's Parquet layout
    label: str  # its column of classes
    labels: str  # the pickles' key of classes
    pickled: dict[str, tuple[str, ...]]  # split -> files
    binary: dict[str, tuple[str, ...]]
    archives: tuple[str, str]
    expected: dict[str, Expected]


def published(count: int, classes: int, digest: str) -> Expected:
    """A split whose pixels are known: the training split in our order, the test split in its own."""
    return Expected(count, classes, digests=frozenset({digest}))


TEN = Cifar(
    name="cifar10",
    title="CIFAR-10",
    classes=CIFAR10,
    config="plain_text",
    label="label",
    labels="labels",
    pickled={
        "train": tuple(f"cifar-10-batches-py/data_batch_{i}" for i in range(1, 6)),
        "test": ("cifar-10-batches-py/test_batch",),
    },
    binary={
        "train": tuple(f"cifar-10-batches-bin/data_batch_{i}.bin" for i in range(1, 6)),
        "test": ("cifar-10-batches-bin/test_batch.bin",),
    },
    archives=("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"),
    expected={
        "train": published(
            50_000, 10, "271d55f5aa229b75b6a53c5e63a6b5bda2184b55c96f658b73a026295f2d5e3d"
        ),
        "test": published(
            10_000, 10, "815bee49b92162b075142619fb16b9562d1186e49d0509d9cf0af8940f739265"
        ),
    },
)
HUNDRED = Cifar(
    name="cifar100",
    title="CIFAR-100",
    classes=CIFAR100,
    config="cifar100",
    label="fine_label",
    labels="fine_labels",
    pickled={split: (f"cifar-100-python/{split}",) for split in ("train", "test")},
    binary={split: (f"cifar-100-binary/{split}.bin",) for split in ("train", "test")},
    archives=("cifar-100-python.tar.gz", "cifar-100-binary.tar.gz"),
    expected={
        "train": published(
            50_000, 100, "988ceea48b18e2ba6708dadc3b9af062e1a3f72155df8fbf419f5b1eade23d66"
        ),
        "test": published(
            10_000, 100, "c4e5d0f8abe8dec50f355ad5e622c815abd93293ca7b5ab9fd56af32924c2061"
        ),
    },
)


def read_pickles(labels: str, blobs: Sequence[Blob]) -> Images:
    """The official Python files: a dict with rows of 3072 bytes and a list of classes."""
    parts = []
    for name, data in blobs:
        held = read_pickle(name, data)
        if not isinstance(held, dict) or not {"data", labels} <= held.keys():
            raise BadInput(f"{name}: a dict with 'data' and {labels!r} expected")
        x = np.asarray(held["data"])
        if x.ndim != 2 or x.shape[1] != PIXELS or x.dtype != np.uint8:
            raise BadInput(f"{name}: rows of {PIXELS} bytes expected, here {x.shape} {x.dtype}")
        parts.append(Images(x.reshape(-1, 3, 32, 32), np.asarray(held[labels], dtype=np.int64)))
    return Images(np.concatenate([p.x for p in parts]), np.concatenate([p.y for p in parts]))


def read_binary(label_bytes: int, blobs: Sequence[Blob]) -> Images:
    """The official binary files: records of the label bytes (the last is the class) and pixels."""
    for name, data in blobs:
        if len(data) == 0 or len(data) % (label_bytes + PIXELS):
            raise BadInput(
                f"{name}: {len(data)} bytes are no whole number of "
                f"{label_bytes + PIXELS}-byte records; the file is truncated"
            )
    records = np.concatenate([np.frombuffer(data, np.uint8) for _, data in blobs])
    records = records.reshape(-1, label_bytes + PIXELS)
    x = np.ascontiguousarray(records[:, label_bytes:]).reshape(-1, 3, 32, 32)
    return Images(x, records[:, label_bytes - 1].astype(np.int64))


def origin(cifar: Cifar, split: str) -> Origin[Images]:
    """Where a split can come from."""
    python, binary = cifar.archives
    return Origin(
        name=f"{cifar.title} {split}",
        folders=(cifar.name, "."),
        layouts=(
            Layout((f"{cifar.config}/{split}-*.parquet",), read_parquet("img", cifar.label)),
            Layout(cifar.pickled[split], partial(read_pickles, cifar.labels), python),
            Layout(cifar.binary[split], partial(read_binary, 1 + (cifar is HUNDRED)), binary),
        ),
        hub=Hub(f"uoft-cs/{cifar.name}", cifar.config, split),
        read_hub=lambda name, table: read_table(name, table, "img", cifar.label),
        how=f"download {python} from the CIFAR page (it need not be unpacked)",
    )


def load(cifar: Cifar, other: Cifar, data_dir: Path | None) -> Task:
    """45,000 images to train on, 5,000 to validate, 10,000 to test, 19 x 5 shifts, two OOD sets."""
    train, test = (locate(origin(cifar, split), data_dir) for split in ("train", "test"))
    near, far = locate(origin(other, "test"), data_dir), locate(svhn.origin("test"), data_dir)
    images = load_images(train, cifar.expected["train"], canonical=True)
    rows, held = hold_out(images.y, VALIDATION)

    @cache
    def tests() -> InMemory:
        return in_memory(load_images(test, cifar.expected["test"]))

    def outside(found: Found[Images], expected: Expected) -> InMemory:
        x = torch.from_numpy(load_images(found, expected).x)
        return InMemory(x, torch.full((len(x),), NONE))

    made = shift.published(f"{cifar.title}-C", tests, data_dir)
    shifts, shift_sources = made or shift.generated(tests, data_dir)
    evaluations: dict[str, Callable[[], Examples]] = {
        "test": tests,
        **shifts,
        SetName.ood(other.name): partial(outside, near, other.expected["test"]),
        SetName.ood("svhn"): partial(outside, far, svhn.EXPECTED["test"]),
    }
    return Task(
        classes=cifar.classes,
        shape=(3, 32, 32),
        train=in_memory(Images(images.x[rows], images.y[rows])),
        validation=in_memory(Images(images.x[held], images.y[held])),
        evaluations=evaluations,
        prepare=normalise(MEAN, STD),
        augment=CropFlip(),
        sources={**merged(train, test, near, far), **shift_sources},
    )


def in_memory(images: Images) -> InMemory:
    """The arrays as tensors."""
    return InMemory(torch.from_numpy(images.x), torch.from_numpy(images.y))


def cifar10(data_dir: Path | None) -> Task:
    """CIFAR-10; outside it CIFAR-100 and SVHN."""
    return load(TEN, HUNDRED, data_dir)


def cifar100(data_dir: Path | None) -> Task:
    """CIFAR-100; outside it CIFAR-10 and SVHN."""
    return load(HUNDRED, TEN, data_dir)


def inventory(data_dir: Path | None) -> Iterator[Item]:
    """What is there of both, of SVHN, and of their published corrupted arrays."""

    def measure(expected: Expected, canonical: bool, found: Found[Images]) -> tuple[int, int]:
        y = load_images(found, expected, canonical).y
        return len(y), len(np.unique(y))

    for cifar in (TEN, HUNDRED):
        for split, expected in cifar.expected.items():
            yield item(origin(cifar, split), data_dir, partial(measure, expected, split == "train"))
    yield item(svhn.origin("test"), data_dir, partial(measure, svhn.EXPECTED["test"], False))
    for name in ("CIFAR-10-C", "CIFAR-100-C"):
        there = shift.arrays(name, data_dir)
        state = "present" if there else "missing (generated when needed)"
        sources = tuple((f"{name}/{file.name}", sha256(file)) for file in there.values())
        yield Item(name, state, len(there) or None, None, sources)
