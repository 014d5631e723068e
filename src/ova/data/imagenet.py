"""ImageNet (ILSVRC 2012) from disk, as class folders or Arrow: too large for memory."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ova.data.augmentation import normalise
from ova.data.folders import scan
from ova.data.hub import Hub, hub_dataset
from ova.data.images import hold_out
from ova.data.inventory import Item
from ova.data.shift import Change, changes
from ova.data.sources import places
from ova.data.stored import Cut, Store, Stored, workers_here
from ova.data.task import Examples, Task
from ova.errors import BadInput
from ova.files import sha256

FOLDERS = ("imagenet", "ImageNet", "imagenet-1k", "ILSVRC/Data/CLS-LOC", ".")
CORRUPTED = ("imagenet-c", "ImageNet-C")
COUNTS = {"train": 1_281_167, "test": 50_000}
PER_CLASS = 10  # images of each class held out for validation
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
HOW = (
    "download ILSVRC2012_img_train.tar and ILSVRC2012_img_val.tar from image-net.org and unpack "
    "them into train/<class>/ and val/<class>/, or accept the terms of ILSVRC/imagenet-1k on the hub"
)
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Split:
    """One half of ImageNet, wherever it lies."""

    store: Store
    y: np.ndarray
    classes: tuple[str, ...]
    sources: dict[str, str]


@dataclass(frozen=True)
class Arrow:
    """Encoded images in a memory-mapped `datasets.Dataset`."""

    dataset: Any
    title: str

    def __len__(self) -> int:
        return len(self.dataset)

    def name(self, row: int) -> str:
        """How to call one image."""
        return f"{self.title} row {row}"

    def read(self, row: int) -> bytes:
        """The bytes of one image."""
        return self.dataset[row]["image"]["bytes"] or b""


def from_folder(root: Path, classes: tuple[str, ...] | None) -> Split:
    """A split of class folders."""
    folder = scan(root, classes)
    return Split(folder, folder.y, folder.classes, {f"{root.name} (listing)": folder.digest})


def from_arrow(dataset: Any, title: str) -> Split:
    """A split as the hub has it: columns `image` and `label`."""
    for column in ("image", "label"):
        if column not in dataset.column_names:
            raise BadInput(f"{title}: there is no column {column!r}, only {dataset.column_names}")
    labels = np.asarray(dataset.data.column("label").to_pylist(), dtype=np.int64)
    feature = dataset.features["label"]
    names = getattr(feature, "names", None) or [str(k) for k in range(int(labels.max()) + 1)]
    files = [Path(entry["filename"]) for entry in dataset.cache_files]
    return Split(
        Arrow(dataset, title), labels, tuple(names), {f"{title}/{f.name}": sha256(f) for f in files}
    )


def on_disk(folder: Path) -> tuple[Split, Split] | None:
    """Train and test below one folder: class folders, saved Arrow, or Parquet shards."""
    train = folder / "train"
    test = next((folder / name for name in ("val", "validation") if (folder / name).is_dir()), None)
    if train.is_dir() and test is not None:
        if (train / "dataset_info.json").is_file():
            return from_arrow(saved(train), "train"), from_arrow(saved(test), "validation")
        first = from_folder(train, None)
        return first, from_folder(test, first.classes)
    shards = {
        s: sorted(map(str, folder.glob(f"data/{s}-*.parquet"))) for s in ("train", "validation")
    }
    if all(shards.values()):
        import datasets

        held = datasets.load_dataset("parquet", data_files=shards)
        return tuple(from_arrow(undecoded(held[s]), s) for s in shards)  # type: ignore[return-value]
    return None


def saved(folder: Path) -> Any:
    """A data set that `datasets` saved to disk."""
    import datasets

    try:
        return undecoded(datasets.load_from_disk(str(folder)))
    except Exception as error:  # a damaged folder can raise nearly anything
        raise BadInput(f"{folder}: not a data set saved by `datasets` ({error})") from error


def undecoded(dataset: Any) -> Any:
    """The data set with its images as bytes: they are decoded where they are cropped."""
    import datasets

    return dataset.cast_column("image", datasets.Image(decode=False))


def looked(data_dir: Path | None) -> list[Path]:
    """The folders in which it may be, in order."""
    return [place / folder for place in places(data_dir) for folder in FOLDERS]


def search(data_dir: Path | None) -> tuple[Split, Split] | None:
    """Train and test, from the first folder on disk that has both."""
    found = (on_disk(folder) for folder in looked(data_dir) if folder.is_dir())
    return next(filter(None, found), None)


def find(data_dir: Path | None) -> tuple[Split, Split]:
    """Train and test, from the first place that has both."""
    there = search(data_dir)
    if there:
        return there
    try:
        train, test = (
            from_arrow(hub_dataset(Hub("ILSVRC/imagenet-1k", None, split)), split)
            for split in ("train", "validation")
        )
    except ConnectionError as error:
        raise BadInput(
            "ImageNet is not here.\n"
            "  looked for: train/<class>/*.JPEG + val/<class>/*.JPEG\n"
            "  looked for: data/train-*.parquet + data/validation-*.parquet\n"
            f"  in: {', '.join(map(str, looked(data_dir)))}\n"
            f"  and on the hub: {error}\n"
            f"  to get it: {HOW}; then name its folder with --data-dir or OVA_DATA."
        ) from error
    return train, test


def shifts(
    test: Stored, classes: tuple[str, ...], data_dir: Path | None
) -> tuple[dict[str, Callable[[], Examples]], dict[str, str]]:
    """Each corruption and severity: from published ImageNet-C folders, or made from the test set."""
    roots = [place / name for place in places(data_dir) for name in CORRUPTED]

    def make(change: Change) -> Examples:
        for root in roots:
            for folder in (root / change.corruption, *root.glob(f"*/{change.corruption}")):
                if (folder / str(change.severity)).is_dir():
                    split = from_folder(folder / str(change.severity), classes)
                    return stored(split, np.arange(len(split.y)), test.size, "whole")
        return replace(test, change=change, unreadable=set())

    made, sources = changes("imagenet", data_dir)
    return {name: partial(make, change) for name, change in made.items()}, sources


def stored(split: Split, rows: np.ndarray, size: int, cut: Cut) -> Stored:
    """Some rows of a split as examples."""
    return Stored(split.store, rows, split.y[rows], size, cut, workers=workers_here())


def load(data_dir: Path | None, size: int = 224) -> Task:
    """All but ten images of each class to train on, those to validate, the official 50,000 to test."""
    train, test = find(data_dir)
    if len(train.classes) == 1000 and (len(train.y), len(test.y)) != tuple(COUNTS.values()):
        log.warning("ImageNet has %s images, here are %d + %d", COUNTS, len(train.y), len(test.y))
    per_class = np.bincount(train.y, minlength=len(train.classes))
    if per_class.min() < 2:
        scarce = train.classes[int(per_class.argmin())]
        raise BadInput(f"class {scarce} has {per_class.min()} training images; two are the least")
    each = min(PER_CLASS, max(1, int(per_class.min()) // 10))
    rows, held = hold_out(train.y, each * len(train.classes))
    tests = stored(test, np.arange(len(test.y)), size, "centre")
    shifted, shift_sources = shifts(tests, train.classes, data_dir)
    evaluations: dict[str, Callable[[], Examples]] = {"test": lambda: tests, **shifted}
    return Task(
        classes=train.classes,
        shape=(3, size, size),
        train=stored(train, rows, size, "random"),
        validation=stored(train, held, size, "centre"),
        evaluations=evaluations,
        prepare=normalise(MEAN, STD),
        sources={**train.sources, **test.sources, **shift_sources},
    )


def small(data_dir: Path | None) -> Task:
    """The same images at 64 x 64, for machines without a GPU."""
    return load(data_dir, 64)


def inventory(data_dir: Path | None) -> Iterator[Item]:
    """What is there of ImageNet; its digests are of names and sizes."""
    try:
        found = search(data_dir)
    except BadInput as error:
        yield Item("ImageNet", str(error))
        return
    if found is None:
        yield Item("ImageNet", "missing")
        return
    for name, split in zip(("ImageNet train", "ImageNet test"), found, strict=True):
        sources = tuple(split.sources.items())
        yield Item(name, "present", len(split.y), len(split.classes), sources)
