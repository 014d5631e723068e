"""What may be written: none of its inputs, no file that belongs to a run or a model.

Whoever writes asks here before any work: what is said after an hour helps nobody.
"""

import os
from collections.abc import Iterable, Mapping
from itertools import combinations
from pathlib import Path

from ova.errors import BadInput
from ova.files import not_utf8


def check_files(outputs: Mapping[str, Path | None], inputs: Iterable[Path | str]) -> None:
    """Refuse files, by the option that names each, that cannot be written or must not be."""
    given = {option: path for option, path in outputs.items() if path is not None}
    read = [Path(path) for path in inputs]
    for option, path in given.items():
        if path.is_dir():
            raise BadInput(f"{option} {path} is a folder; name a file")
        if path.exists() and not path.is_file():
            raise BadInput(f"{option} {path} is a device or a pipe; name a file")
        check_place(option, path)
        if any(same(path, each) for each in read):
            raise BadInput(f"{option} would write over {path}, which is read; name another file")
        if place := owner(path.resolve()):
            whose = f"a file of the run, model or data set in {place}"
            raise BadInput(f"{option} {path} is {whose}; name another file")
    for (one, first), (two, second) in combinations(given.items(), 2):
        if first.resolve() == second.resolve() or same(first, second):
            raise BadInput(f"{one} and {two} are the same file, {first}")


def check_folder(option: str, path: Path, inputs: Iterable[Path | str] = ()) -> None:
    """Refuse a folder that cannot be written to, or that lies inside one that is read."""
    if path.exists() and not path.is_dir():
        raise BadInput(f"{option} {path} is a file; name a folder, there or to be made")
    check_place(option, path / "in it")
    for each in map(Path, inputs):
        if each.is_dir() and path.resolve().is_relative_to(each.resolve()):
            raise BadInput(f"{option} {path} is inside {each}, which is read; name another folder")


def check_place(option: str, path: Path) -> None:
    """Refuse a path below a file, or in a folder where nothing can be written."""
    if not_utf8(str(path)):  # Arrow cannot write such a file
        raise BadInput(f"{option} {path}: its name is not UTF-8; name another place")
    there = next((each for each in path.absolute().parents if os.path.lexists(each)), path)
    if not there.is_dir():
        raise BadInput(f"{option} {path}: {there} is not a folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise BadInput(f"{option} {path}: nothing can be written in {there}; name another place")


def same(one: Path, other: Path) -> bool:
    """Whether two names are of one file: by a link too, or where large and small letters are alike."""
    try:
        return one.samefile(other)
    except OSError:  # one of them is not there
        return False


def owner(path: Path) -> Path | None:
    """The folder of the run, the runs or the model that the file belongs to, if it does."""
    from ova.modelfolder.names import FEATURES, MODEL, REPORT, WEIGHTS
    from ova.training import run_folder as run

    folder = path.parent
    for place in (folder, *folder.parents):
        inside = run.PREDICTIONS in path.relative_to(place).parts[:1]
        if ((path.name in run.OURS and place == folder) or inside) and is_run(place):
            return place
    collected = (run.RUNS, run.ALL_CURVES, run.MEASUREMENTS)
    if path.name in collected and run.is_collection(folder):
        return folder
    ours = path.name in (WEIGHTS, FEATURES, REPORT) or (path.suffix == ".json" and path.exists())
    return folder if ours and (folder / MODEL).is_file() else None


def is_run(folder: Path) -> bool:
    """Whether a run has begun in the folder; a file of measurements alone may be anybody's."""
    from ova.training.run_folder import MANIFEST, RECIPE

    return any((folder / name).is_file() for name in (RECIPE, MANIFEST))
