"""A promise anew: threshold, calibration and sets of a model fitted on other rows, without training."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copyfile
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.files import beside, read_object, write_beside, write_json
from ova.modelfolder import confidence, folder
from ova.modelfolder.again import Answered, answered
from ova.modelfolder.folder import Model
from ova.modelfolder.held import Held, held
from ova.modelfolder.names import CALIBRATION, HELD, MODEL
from ova.modelfolder.promise import COVERAGE
from ova.posthoc.calibration import Top
from ova.posthoc.independent import one_of_each
from ova.posthoc.per_class import CLASS, EachClass, Thresholds
from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.predictions import NONE

RENEWED = "renewed"  # in `model.json`: on how many rows of which files its promises rested, the last at last


@dataclass(frozen=True)
class Renewed:
    """What is fitted on the new rows, and what the user should know of them."""

    threshold: Threshold | Thresholds
    calibration: Top | str  # or the reason why there is none
    kept: Held
    notes: tuple[str, ...]
    source: dict[str, Any]


def renewed(model: Model, path: Path, label: str, wanted: Promise) -> Renewed:
    """Fit threshold, calibration and sets on labelled rows; without a wish, of the promise that the model has.

    The network and the score that decides stay as they are, so the theorem is that of `fit_threshold`, of
    inputs like these rows: they must have had no part in the training.
    """
    rows = answered(model, path, label, matrix=True)
    lone = one_of_each(rows.keys)
    said, by = rows.said.take(lone), rows.judged.take(lone)
    asked = wanted if wanted.says else usual(model.threshold, wanted)
    threshold: Threshold | Thresholds
    if isinstance(asked, EachClass):
        threshold = fit_threshold(by, asked.accuracy, asked.certainty, per=CLASS, pool=asked.pool)
    else:
        threshold = fit_threshold(
            by,
            asked.accuracy,
            asked.certainty,
            coverage=asked.coverage,
            leak=asked.leak,
            outside=strangers(by.confidence[by.target == NONE], asked, path),
        )
    source = {"rows": len(by), "from": path.name}
    return Renewed(
        threshold, confidence.fit(said), held(said, by), tuple(notes(rows, len(lone))), source
    )


def usual(threshold: Threshold | Thresholds, wanted: Promise) -> Promise:
    """The promise that a model has, at the certainty that is wanted; a coverage where it has none."""
    promise = threshold.promise
    if isinstance(threshold, Thresholds):
        pool = bool(threshold.pooled)
        return EachClass(accuracy=promise.accuracy, certainty=wanted.certainty, pool=pool)
    if not promise.says:
        return replace(wanted, coverage=COVERAGE)
    return replace(promise, certainty=wanted.certainty)


def strangers(outside: np.ndarray, wanted: Promise, path: Path) -> np.ndarray | None:
    """The scores of rows of none of the classes, without which no leak can be promised."""
    if wanted.leak is not None and not len(outside):
        raise BadInput(
            f"{path}: the promise limits how many inputs of none of the classes are answered, and no row "
            "is one; add such rows, or ask for --accuracy or --coverage alone"
        )
    return outside.astype(np.float64) if len(outside) else None


def notes(rows: Answered, count: int) -> Iterator[str]:
    """What was found about the rows."""
    if rows.bad:
        yield f"{rows.bad} rows could not be used"
    if count < len(rows.keys):
        yield f"{len(rows.keys)} rows are {count} different inputs, which count once each"
    if none := int((rows.said.target == NONE).sum()):
        yield f"{none} rows have a label that the model does not know: they are of none of the classes"


def save(model: Model, source: Path, out: Path, found: Renewed) -> None:
    """Write the model with its new promise to another folder, last `model.json`: whole or no model."""
    facts = dict(model.facts)
    (out / MODEL).unlink(missing_ok=True)
    for name in facts["parts"]:
        if name not in (CALIBRATION, HELD):
            with write_beside(out / name) as part:
                copyfile(source / name, part)
    write_json(out / CALIBRATION, confidence.to_json(found.calibration))
    write_json(out / HELD, found.kept.to_json(), indent=0)
    facts["threshold"] = found.threshold.to_json()
    facts[RENEWED] = [*facts.get(RENEWED, []), found.source]
    folder.seal(out, facts, [*dict.fromkeys([*facts["parts"], CALIBRATION, HELD])])


def check_out(out: Path) -> None:
    """Refuse a folder that holds anything but what this command wrote there, whole or killed."""
    ours = {Path(name).parts[0] for name in folder.PARTS_OF_ANY}
    there = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if MODEL in there and RENEWED in read_object(out / MODEL):
        ours.add(MODEL)
    if not there <= ours | {beside(Path(name)).name for name in (*ours, MODEL)}:
        raise BadInput(f"{out} is not empty; name another --out")
