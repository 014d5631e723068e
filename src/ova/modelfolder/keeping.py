"""The score that decides in its model folder: what it has learned, and the training rows it looks at."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ova import scores
from ova.errors import BadInput
from ova.files import read_json, write_json
from ova.metrics.choice import PLAIN
from ova.modelfolder.evidence import Evidence
from ova.modelfolder.names import EXAMPLES, SCORES
from ova.scores.keeping import ARRAYS, FACTS

PARTS = (f"{SCORES}/{FACTS}", f"{SCORES}/{ARRAYS}", EXAMPLES)


def write(folder: Path, evidence: Evidence) -> tuple[str, ...]:
    """Write what the score needs, and name the parts; those of another score are removed."""
    for name in PARTS:
        (folder / name).unlink(missing_ok=True)
    if evidence.scores is None:
        return ()
    scores.save(folder / SCORES, evidence.scores)
    if evidence.bank is None:
        return PARTS[:2]
    write_json(folder / EXAMPLES, list(evidence.examples), indent=0)
    return PARTS


def read(folder: Path, facts: Mapping[str, Any]) -> Evidence:
    """The score that decides; models of earlier versions name none, and decide by max p."""
    if "score" not in facts:
        return Evidence()
    name, why = facts["score"]["name"], facts["score"]["why"]
    if name == PLAIN:
        return Evidence(PLAIN, why)
    fitted = scores.load(folder / SCORES)
    if fitted.names != (name,):
        raise BadInput(f"{folder / SCORES} holds {', '.join(fitted.names)}, not the score {name}")
    found = Evidence(name, why, fitted)
    if found.bank is None:
        return found
    examples = read_json(folder / EXAMPLES)
    if not isinstance(examples, list) or len(examples) != len(found.bank.row):
        raise BadInput(f"{folder / EXAMPLES} does not name the {len(found.bank.row)} training rows")
    return Evidence(name, why, fitted, tuple(map(str, examples)))
