"""The manifest of a corrupted set: what it was made from, how, and the hash of every file."""

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ova.corruptions.textures import Textures
from ova.errors import BadInput
from ova.files import read_object, sha256, write_json

MANIFEST = "manifest.json"
PACKAGES = ("numpy", "numba", "opencv-python-headless", "pillow", "scipy")


@dataclass(frozen=True)
class How:
    """What every file of one set has in common."""

    seed: int
    constants: str
    severities: tuple[int, ...]
    textures: Textures

    def settings(self) -> dict[str, Any]:
        """The settings as the manifest keeps them."""
        frost = {"source": self.textures.source, "sha256": self.textures.sha256}
        return {
            "seed": self.seed,
            "constants": self.constants,
            "severities": list(self.severities),
            "frost_textures": frost,
        }


def begin(out: Path, source: str, digest: str, how: How) -> dict[str, Any]:
    """The manifest of a folder, new or continued; a folder of other settings is refused."""
    fresh = {
        "ova": version("ova"),
        "versions": {package: version(package) for package in PACKAGES},
        "data": {source: digest},
        **how.settings(),
        "files": {},
    }
    path = out / MANIFEST
    if not path.exists():
        write_json(path, fresh)
        return fresh
    found = read(path)
    for key in ("data", *how.settings()):
        if found.get(key) != fresh[key]:
            raise BadInput(
                f"{out} holds a set with {key} = {found.get(key)}, not {fresh[key]}; "
                "give another --out, or remove that folder"
            )
    return found


def read(path: Path) -> dict[str, Any]:
    """A manifest from disk."""
    try:
        found = read_object(path)
        if isinstance(found["files"], dict):
            return found
    except (OSError, BadInput, KeyError):
        pass
    raise BadInput(f"{path} is not the manifest of a corrupted set; give another --out")


def complete(out: Path, manifest: dict[str, Any], name: str) -> bool:
    """Whether a file is there as the manifest says."""
    known, path = manifest["files"].get(name), out / name
    return known is not None and path.is_file() and sha256(path) == known


def note(out: Path, manifest: dict[str, Any], name: str) -> None:
    """Enter a finished file into the manifest."""
    manifest["files"] = dict(sorted({**manifest["files"], name: sha256(out / name)}.items()))
    write_json(out / MANIFEST, manifest)
