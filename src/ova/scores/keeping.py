"""Fitted scores in a folder: numbers as JSON, arrays as safetensors, a hash over both, no pickle."""

import hashlib
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput, pick
from ova.files import checked, read_json, sha256, write_beside, write_json
from ova.predictions.columns import Array
from ova.scores.fitting import FittedScores
from ova.scores.outputs import AffineHead
from ova.scores.score import Fitted
from ova.scores.table import SCORES

FORMAT, VERSION = "ova scores", 1
FACTS, ARRAYS = "scores.json", "scores.safetensors"
KEYS = ("format", "version", "names", "scores", "head", "width", "left_out", "arrays", "sha256")


def save(folder: Path, scores: FittedScores) -> None:
    """Write the scores; an array that several of them share is written once."""
    from safetensors.numpy import save as as_bytes

    arrays: dict[str, Array] = {}
    places: dict[int, str] = {}

    def put(name: str, value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in places:
            places[id(value)] = name
            arrays[name] = np.ascontiguousarray(value)
        return {"array": places[id(value)]}

    def state(name: str, of: Any) -> dict[str, Any]:
        if not is_dataclass(of):
            raise BadInput(f"the score {name} cannot be kept: it is not a dataclass")
        return {f.name: put(f"{name}.{f.name}", getattr(of, f.name)) for f in fields(of) if f.init}

    content = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(scores.names),
        "scores": {n: {} if SCORES[n].column else state(n, s) for n, s in scores.fitted.items()},
        "head": None if scores.head is None else state("head", scores.head),
        "width": scores.width,
        "left_out": dict(scores.left_out),
    }
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FACTS).unlink(missing_ok=True)  # the folder is whole or no scores
    with write_beside(folder / ARRAYS) as beside:
        # Not `save_file`: a full disk would be an error of its own kind, and a kill leave its part.
        beside.write_bytes(as_bytes(arrays))
    content["arrays"] = sha256(folder / ARRAYS)
    write_json(folder / FACTS, {**content, "sha256": digest(content)})


def load(folder: Path) -> FittedScores:
    """The scores of a folder; one that was changed is refused, and nothing in it can run."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / FACTS
    if not path.is_file():
        raise BadInput(f"{folder} holds no scores: there is no {FACTS} in it")
    facts = checked(read_json(path), KEYS, f"{path}")
    if (facts["format"], facts["version"]) != (FORMAT, VERSION):
        raise BadInput(f"{path} is not of the format {FORMAT} {VERSION}")
    said = facts.pop("sha256")
    if said != digest(facts):
        raise BadInput(f"{path} was changed: its SHA-256 is {digest(facts)}, it says {said}")
    if not (folder / ARRAYS).is_file() or sha256(folder / ARRAYS) != facts["arrays"]:
        raise BadInput(f"{folder / ARRAYS} is missing or was changed after it was written")
    try:
        arrays = load_file(folder / ARRAYS)
        states = {name: _filled(state, arrays) for name, state in facts["scores"].items()}
        fitted: dict[str, Fitted] = {
            name: pick(SCORES, name, "score").restore(**state) for name, state in states.items()
        }
        head = facts["head"] and AffineHead(**_filled(facts["head"], arrays))
    except (SafetensorError, KeyError, TypeError) as error:
        raise BadInput(f"{folder} does not hold whole scores: {error!r}") from None
    return FittedScores(fitted, tuple(facts["names"]), head, facts["width"], facts["left_out"])


def _filled(state: dict[str, Any], arrays: dict[str, Array]) -> dict[str, Any]:
    return {k: arrays[v["array"]] if isinstance(v, dict) else v for k, v in state.items()}


def digest(content: Any) -> str:
    """The SHA-256 of JSON content, whatever its layout."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
