"""What data is on this machine: each split that is there, read and checked, and what is not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ova.data.sources import Found, Origin, places, search
from ova.errors import BadInput


@dataclass(frozen=True)
class Item:
    """One split: its examples counted when it is there, the reason when it cannot be used."""

    name: str
    state: str  # "present", "missing", or what is wrong
    count: int | None = None
    classes: int | None = None
    sources: tuple[tuple[str, str], ...] = ()  # file, SHA-256


def inventory(data_dir: Path | None) -> Iterator[Item]:
    """Every split the data sets know, in order; the hub is not asked."""
    yield from images(data_dir)
    yield from text(data_dir)
    yield from drawings(data_dir)
    yield from published(data_dir)
    yield from large(data_dir)


def item(
    origin: Origin[Any], data_dir: Path | None, measure: Callable[[Found[Any]], tuple[int, int]]
) -> Item:
    """One split, found, read and measured."""
    found = search(origin, data_dir)
    if found is None:
        return Item(origin.name, "missing")
    sources = tuple(found.sources.items())
    try:
        count, classes = measure(found)
    except BadInput as error:
        return Item(origin.name, str(error), sources=sources)
    return Item(origin.name, "present", count, classes, sources)


def images(data_dir: Path | None) -> Iterator[Item]:
    """The data sets of small images."""
    from ova.data import cifar, svhn
    from ova.data.images import Expected, load_images

    wanted: list[tuple[Origin[Any], Expected, bool]] = [
        (cifar.origin(c, split), c.expected[split], split == "train")
        for c in (cifar.TEN, cifar.HUNDRED)
        for split in ("train", "test")
    ]
    wanted.append((svhn.origin("test"), svhn.EXPECTED["test"], False))
    for origin, expected, canonical in wanted:

        def measure(
            found: Found[Any], expected: Expected = expected, canonical: bool = canonical
        ) -> tuple[int, int]:
            held = load_images(found, expected, canonical)
            return len(held.y), len(set(held.y.tolist()))

        yield item(origin, data_dir, measure)


def text(data_dir: Path | None) -> Iterator[Item]:
    """The sentences and their vocabulary."""
    from ova.data import clinc, wordpiece

    def sentences(found: Found[Any]) -> tuple[int, int]:
        rows = found.read()
        return sum(map(len, rows.values())), len({intent for _, intent in rows["train"]})

    yield item(clinc.origin(), data_dir, sentences)
    yield item(wordpiece.origin(), data_dir, lambda found: (len(found.read()), 0))


def drawings(data_dir: Path | None) -> Iterator[Item]:
    """Omniglot."""
    from ova.data import omniglot

    def measure(found: Found[Any]) -> tuple[int, int]:
        held = found.read()
        return len(held.label), len(held.names)

    for split in omniglot.CHARACTERS:
        yield item(omniglot.origin(split), data_dir, measure)


def published(data_dir: Path | None) -> Iterator[Item]:
    """Published arrays of corrupted images; without them they are made as they are needed."""
    from ova.data.shift import arrays
    from ova.files import sha256

    for name in ("CIFAR-10-C", "CIFAR-100-C"):
        there = arrays(name, data_dir)
        state = "present" if there else "missing (generated when needed)"
        sources = tuple((f"{name}/{file.name}", sha256(file)) for file in there.values())
        yield Item(name, state, len(there) or None, None, sources)


def large(data_dir: Path | None) -> Iterator[Item]:
    """ImageNet; its digests are of names and sizes."""
    from ova.data import imagenet

    for place in places(data_dir):
        for folder in imagenet.FOLDERS:
            try:
                found = imagenet.on_disk(place / folder) if (place / folder).is_dir() else None
            except BadInput as error:
                yield Item("ImageNet", str(error))
                return
            if found:
                for name, split in zip(("ImageNet train", "ImageNet test"), found, strict=True):
                    sources = tuple(split.sources.items())
                    yield Item(name, "present", len(split.y), len(split.classes), sources)
                return
    yield Item("ImageNet", "missing")
