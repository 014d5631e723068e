"""Where data is looked for: the folder the user named, the local cache, then the hub."""

import hashlib
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Generic, NamedTuple, TypeVar

from ova.data.hub import Hub, hub_table
from ova.errors import BadInput
from ova.files import reading, sha256

T = TypeVar("T")
MANY = 100  # files, above which a manifest names their folder
LARGEST_MEMBER = 1 << 30  # no file of these data sets is larger; an archive bomb is


class Blob(NamedTuple):
    """The bytes of a file, under the name that an error should give."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Layout(Generic[T]):
    """One form in which people have a data set: the files that make it, and how they are read."""

    files: tuple[str, ...]  # patterns below the folder; each must match
    read: Callable[[Sequence[Blob]], T]
    archive: str = ""  # a tar or zip that holds the same files, read without unpacking it


@dataclass(frozen=True)
class Origin(Generic[T]):
    """Everything that is known about getting one split of one data set."""

    name: str
    folders: tuple[str, ...]  # below the data folder, in the order they are tried
    layouts: tuple[Layout[T], ...]
    hub: Hub | None = None
    read_hub: Callable[[str, object], T] | None = None  # (name, Arrow table)
    how: str = ""  # how to get it, for the error when it is nowhere


@dataclass(frozen=True)
class Found(Generic[T]):
    """A split that is there: what it was made of, and how to read it (slow, so only when asked)."""

    name: str
    sources: Mapping[str, str]  # file -> SHA-256
    read: Callable[[], T] = field(repr=False)


def cache_dir() -> Path:
    """The folder of what we keep between runs: OVA_CACHE, or the user's cache folder."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(os.environ.get("OVA_CACHE") or home / "ova")


def places(data_dir: Path | None) -> list[Path]:
    """The folders to look in: the one named here or by OVA_DATA, then the local cache."""
    named = data_dir or (Path(os.environ["OVA_DATA"]) if os.environ.get("OVA_DATA") else None)
    if named is not None and not Path(named).is_dir():
        raise BadInput(f"the data folder {named} does not exist; --data-dir or OVA_DATA names it")
    return ([Path(named)] if named else []) + [cache_dir() / "data"]


def locate(origin: Origin[T], data_dir: Path | None) -> Found[T]:
    """The first form of the data that is there; an error that says where we looked otherwise."""
    return search(origin, data_dir) or from_hub(origin, places(data_dir))


def search(origin: Origin[T], data_dir: Path | None) -> Found[T] | None:
    """The first form of the data that is on this machine, None when there is none."""
    for place in places(data_dir):
        for folder in origin.folders:
            for layout in origin.layouts:
                for look in (in_folder, in_archive):
                    found = look(origin, layout, place, folder)
                    if found:
                        return found
    return None


def in_folder(origin: Origin[T], layout: Layout[T], place: Path, folder: str) -> Found[T] | None:
    """The data as plain files below one folder."""
    matches = [sorted((place / folder).glob(pattern)) for pattern in layout.files]
    if not all(matches):
        return None
    paths = [path for match in matches for path in match]

    def read() -> T:
        with reading(place / folder, origin.name):
            return layout.read([Blob(str(path), path.read_bytes()) for path in paths])

    return Found(origin.name, digests(paths, place), read)


def digests(paths: Sequence[Path], place: Path) -> dict[str, str]:
    """The SHA-256 of each file; of very many one for all of them, from their names and hashes."""
    each = {path.relative_to(place).as_posix(): sha256(path) for path in paths}
    if len(each) <= MANY:
        return each
    lines = "".join(f"{digest}  {name}\n" for name, digest in each.items())
    folder = os.path.commonpath(list(each))
    return {f"{folder} ({len(each)} files)": hashlib.sha256(os.fsencode(lines)).hexdigest()}


def in_archive(origin: Origin[T], layout: Layout[T], place: Path, folder: str) -> Found[T] | None:
    """The data in an archive that nobody unpacked."""
    path = place / folder / layout.archive
    if not layout.archive or not path.is_file():
        return None

    def read() -> T:
        with reading(path, f"an archive of {origin.name}"):
            blobs = list(members(path, layout.files))
            for wanted in layout.files:
                if not any(fnmatch(blob.name.split("!")[-1], wanted) for blob in blobs):
                    raise BadInput(f"{path}: there is no {wanted} in this archive")
            return layout.read(blobs)

    return Found(origin.name, {path.relative_to(place).as_posix(): sha256(path)}, read)


def members(path: Path, wanted: Sequence[str]) -> Iterator[Blob]:
    """The wanted files of an archive, in the wanted order; nothing is ever written to disk."""
    opened = zip_members if zipfile.is_zipfile(path) else tar_members
    held = dict(opened(path, wanted))
    for pattern in wanted:
        yield from (Blob(f"{path}!{n}", held[n]) for n in sorted(held) if fnmatch(n, pattern))


def tar_members(path: Path, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each wanted plain file of a tar; links and devices are passed over."""
    with tarfile.open(path) as archive:
        for member in archive:
            name = str(PurePosixPath(member.name))
            if member.isfile() and any(fnmatch(name, pattern) for pattern in wanted):
                check_size(path, name, member.size)
                file = archive.extractfile(member)
                assert file is not None  # isfile() promises it
                yield name, file.read()


def zip_members(path: Path, wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of each wanted file of a zip."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if any(fnmatch(member.filename, pattern) for pattern in wanted):
                check_size(path, member.filename, member.file_size)
                yield member.filename, archive.read(member)


def check_size(path: Path, name: str, size: int) -> None:
    """Refuse a member that would fill the memory."""
    if size > LARGEST_MEMBER:
        raise BadInput(f"{path}: {name} unpacks to {size} bytes, which is not this data set")


def from_hub(origin: Origin[T], looked: Sequence[Path]) -> Found[T]:
    """The data from the Hugging Face hub, or the error that tells all that was tried."""
    reason = "this data set is not fetched from the hub"
    if origin.hub is not None and origin.read_hub is not None:
        read_hub = origin.read_hub
        try:
            table, sources = hub_table(origin.hub)
        except ConnectionError as error:
            reason = str(error)
        else:
            return Found(origin.name, sources, lambda: read_hub(str(origin.hub), table))
    raise BadInput(missing(origin, looked, reason))


def missing(origin: Origin[T], looked: Sequence[Path], reason: str) -> str:
    """What to say about data that is nowhere: which files, where, and how to get them."""
    forms = [
        " + ".join(layout.files) + (f" (or {layout.archive})" if layout.archive else "")
        for layout in origin.layouts
    ]
    folders = ", ".join(str(place / folder) for place in looked for folder in origin.folders)
    return (
        f"{origin.name} is not here.\n"
        + "".join(f"  looked for: {form}\n" for form in forms)
        + f"  in: {folders}\n"
        + f"  and on the hub: {reason}\n"
        + f"  to get it: {origin.how or 'connect this machine to the hub once'}; "
        + "then name its folder with --data-dir or OVA_DATA."
    )
