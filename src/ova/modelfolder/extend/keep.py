"""An extended model as a folder: like any other, with its history and the rows that it rests on."""

from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from typing import Any

from ova.errors import BadInput
from ova.files import read_object, write_json, write_text
from ova.modelfolder import folder as model_folder
from ova.modelfolder import names
from ova.modelfolder.extend.extend import Extended
from ova.modelfolder.extend.stored import PARTS
from ova.modelfolder.folder import Model
from ova.training import checkpoint
from ova.training.manifest import circumstances

NOT_COPIED = ("format", "version", "classes", "score", "threshold", "parts", "history")
HISTORY = "history"


def check_out(out: Path) -> None:
    """Refuse a folder that holds something."""
    if out.exists() and any(out.iterdir()):
        raise BadInput(f"--out {out} is not empty; name a folder that is not there yet")


def keep(found: Extended, model: Model, folder: Path, out: Path, page: str) -> None:
    """Write the folder beside its place and rename it into it: it is whole or not there."""
    beside = out.with_name(f".{out.name}.part")
    rmtree(beside, ignore_errors=True)
    try:
        beside.mkdir(parents=True)
        write(found, model, folder, beside)
        write_text(beside / names.REPORT, page)
        model_folder.load(beside)  # what cannot be read is not given away
        if out.exists():
            out.rmdir()
        beside.replace(out)
    finally:
        rmtree(beside, ignore_errors=True)


def write(found: Extended, model: Model, folder: Path, beside: Path) -> None:
    """Every part of the model."""
    checkpoint.save(beside / names.WEIGHTS, found.net.state_dict(), {})
    tensors = {
        f"{name}/{part}": getattr(rows, part) for name, rows in found.sets.items() for part in PARTS
    }
    checkpoint.save(beside / names.FEATURES, tensors, {})
    write_json(beside / names.ROWS, list(found.named), indent=0)
    about = {name: value for name, value in model.facts.items() if name not in NOT_COPIED}
    about["classes"] = list(found.change.after)
    about[HISTORY] = [*model.facts.get(HISTORY, []), entry(found, model)]
    model_folder.write_parts(
        beside,
        about,
        found.decides,
        model.preparation,
        read_object(folder / names.MANIFEST),
        (names.FEATURES, names.ROWS),
    )


def entry(found: Extended, model: Model) -> Mapping[str, Any]:
    """What became of a model, for those who come later."""
    change, now = found.change, circumstances()
    return {
        "of": model_folder.digest(model.facts),
        "when": now["started"],
        "ova": now["ova"],
        "command": now["command"],
        "classes": list(change.before),
        "new": {change.after[k]: found.added[change.after[k]] for k in change.new},
        "removed": list(change.removed),
        "merged": {into: list(of) for of, into in change.merged},
        "rows": dict(found.added),
        "none": found.none,
        "moved": [each.to_json() for each in found.moved.values()],
        "threshold": model.threshold.to_json(),  # of before
    }
