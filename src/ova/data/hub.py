"""Data sets of the Hugging Face hub, as Arrow tables with their images still encoded."""

import hashlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from urllib.request import getproxies

from ova.files import sha256


@dataclass(frozen=True)
class Hub:
    """One split of one data set of the hub."""

    path: str
    config: str | None
    split: str

    def __str__(self) -> str:
        return f"{self.path} ({self.config or 'default'}, {self.split})"


def reachable(endpoint: str) -> bool:
    """Whether the hub answers; asked first, because its client retries for half a minute."""
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in {"1", "ON", "YES", "TRUE"}:
        return False
    if getproxies():
        return True  # only the proxy can tell
    url = urlparse(endpoint)
    try:
        with socket.create_connection((url.hostname or "", url.port or 443), timeout=3):
            return True
    except OSError:
        return False


@contextmanager
def offline(config: Any, wanted: bool) -> Iterator[None]:
    """Let `datasets` answer from its own cache at once when the hub does not answer."""
    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = wanted or before
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE = before


def hub_dataset(hub: Hub) -> Any:
    """The split as a `datasets.Dataset`, images undecoded; ConnectionError when it is nowhere."""
    import datasets

    if Path(hub.path).exists():
        raise ConnectionError(
            f"the folder {Path(hub.path).resolve()} would be taken for it; start somewhere else"
        )
    there = reachable(datasets.config.HF_ENDPOINT)
    try:
        with offline(datasets.config, not there):
            found = datasets.load_dataset(hub.path, hub.config, split=hub.split)
    except (OSError, ValueError) as error:  # not reached, not found, gated, no such configuration
        state = "could not be loaded" if there else "is not reachable from here"
        raise ConnectionError(f"{hub} {state} ({str(error).splitlines()[0]})") from error
    for name, feature in found.features.items():
        if isinstance(feature, datasets.Image):
            found = found.cast_column(name, datasets.Image(decode=False))
    return found


def hub_table(hub: Hub) -> tuple[Any, dict[str, str]]:
    """The split as one Arrow table, and the SHA-256 of each file it came from."""
    found = hub_dataset(hub)
    files = [Path(entry["filename"]) for entry in found.cache_files]
    sources = {f"{hub.path}/{hub.split}/{file.name}": sha256(file) for file in files}
    if not sources:  # held in memory: then its fingerprint has to tell it from others
        sources = {str(hub): hashlib.sha256(found._fingerprint.encode()).hexdigest()}
    return found.with_format("arrow")[:], sources


def hub_file(repository: str, name: str, revision: str | None = None) -> Path:
    """One file of a model repository of the hub; ConnectionError when it is nowhere."""
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError

    there = reachable(constants.ENDPOINT)
    try:
        with suppress(OSError):  # at a pinned revision the cache needs no question to the hub
            if revision:
                return Path(
                    hf_hub_download(repository, name, revision=revision, local_files_only=True)
                )
        return Path(
            hf_hub_download(repository, name, revision=revision, local_files_only=not there)
        )
    except (OSError, HfHubHTTPError) as error:
        state = "could not be loaded" if there else "is not reachable from here"
        raise ConnectionError(f"{repository} {state}") from error
