"""What data is on this machine: each split that is there, read and checked, and what is not."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ova.data import FILES
from ova.data.sources import Found, Origin, search
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
    for file in FILES:
        found = getattr(import_module(f"ova.data.{file}"), "inventory", None)
        if found is not None:
            yield from found(data_dir)


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
