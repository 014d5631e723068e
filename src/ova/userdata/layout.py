"""Images that come divided: a folder with `train` and `test`, each of class folders."""

from dataclasses import replace
from pathlib import Path

from ova.data.folders import images_in
from ova.userdata.request import Request

TRAIN, TEST = "train", "test"


def divided(request: Request) -> Request:
    """The same request, reported on the folder `test` where the data has one beside `train`."""
    data = request.data
    if request.test is not None or not data.is_dir() or {*below(data)} != {TRAIN, TEST}:
        return request
    if not all(of_classes(data / part) for part in (TRAIN, TEST)):
        return request
    return replace(request, data=data / TRAIN, test=data / TEST)


def of_classes(folder: Path) -> bool:
    """Whether a folder holds folders and no images."""
    return bool(below(folder)) and not images_in(folder)


def below(folder: Path) -> list[str]:
    """The folders in a folder that are no hidden ones."""
    return [p.name for p in folder.iterdir() if p.is_dir() and not p.name.startswith(".")]
