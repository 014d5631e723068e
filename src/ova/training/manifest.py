"""Where a number comes from: versions, seed, data, command, time and kind of host."""

import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any

from ova.files import cores

PACKAGES = ["torch", "numpy", "lightning-fabric", "transformers", "tokenizers"]
PACKAGES += ["scikit-learn", "pyarrow"]


def manifest(seed: int, sources: Mapping[str, str], **engine: str | int) -> dict[str, Any]:
    """The record of a run that begins now.

    `seconds` grows stage by stage, `resumed` by an entry whenever the run is taken up again.
    """
    begun = {"seed": seed, "data": dict(sources), "seconds": {}, "resumed": []}
    return circumstances(**engine) | begun


def circumstances(**engine: str | int) -> dict[str, Any]:
    """What is the case now and may differ when a run is taken up again.

    `engine` is what of the host does the work: the device, and the threads, whose number decides in
    which order sums are taken and with it the last digits.
    """
    host = {"system": platform.system(), "machine": platform.machine(), "cpus": cores()}
    return {
        "ova": version("ova"),
        "versions": installed(),
        "command": shlex.join([PurePath(sys.argv[0]).name, *sys.argv[1:]]),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": host | engine,
    }


def installed() -> dict[str, str]:
    """The versions of Python and of the packages that can change a number."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found
