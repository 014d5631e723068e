"""A model tried again on labelled rows: is it still what it was?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.special import bdtr

from ova.errors import BadInput
from ova.modelfolder.answer import as_outputs, outputs
from ova.modelfolder.class_table import PerClass, per_class
from ova.modelfolder.folder import Model
from ova.modelfolder.promise import outcome
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import NONE, Predictions
from ova.training.stages import MATRIX
from ova.userdata.labels import labelled, targets, unlabelled
from ova.userdata.request import Request
from ova.userdata.rows import FILE

DOUBT = 0.05  # so rarely a promise that holds would look as bad


@dataclass(frozen=True)
class Again:
    """What a model does on labelled rows, a line for each thing to know."""

    lines: tuple[str, ...]
    kept: bool  # whether every promise looks kept
    by_class: PerClass


def again(model: Model, path: Path, label: str = "") -> Again:
    """Compare a model's answers with labels; one that was not trained is none of the classes."""
    p, bad = judged(model, path, label)
    inside = p.take(p.target != NONE)
    said = [f"{path}: {len(p)} rows" + f", {bad} more could not be used" * bool(bad)]
    said.append(f"all: {outcome([p], model.threshold)}")
    if len(inside) < len(p):
        outside = p.take(p.target == NONE)
        said.append(f"of classes that it does not know: {outcome([outside], model.threshold)}")
    broken = [*doubts(p, model.threshold, model.classes)]
    promised = model.threshold.promise
    return Again(
        lines=(*said, *(broken or [f"nothing speaks against its promise: {promised}"])),
        kept=not broken,
        by_class=per_class(inside, [inside], model.threshold, model.classes),
    )


def judged(model: Model, path: Path, label: str) -> tuple[Predictions, int]:
    """Predictions whose confidence is the score that decides, and how many rows cannot be used."""
    found = answered(model, path, label)
    return found.judged, found.bad


@dataclass(frozen=True)
class Answered:
    """Labelled rows with what a model says of them."""

    said: Predictions
    judged: Predictions  # the same, with the score that decides in the place of the confidence
    keys: Sequence[bytes]  # equal for equal inputs
    bad: int  # rows that cannot be used


def answered(model: Model, path: Path, label: str, matrix: bool = False) -> Answered:
    """What a model says of the rows of a file that can be used; `matrix` keeps all p where they are few."""
    column = model.preparation.column
    request = Request(data=path, label=label, text="" if column == FILE else column)
    if path.is_dir() != (column == FILE):
        raise BadInput(f"{path} is no data of the kind of this model, which is of {model.kind}s")
    frame, labels, _ = labelled(path, request)
    encoded = model.preparation.encode(frame)
    bad = {**unlabelled(labels), **encoded.bad}
    rows = [row for row in range(len(labels)) if row not in bad]
    target = targets(labels, model.classes)[rows].numpy()
    if not (target != NONE).any():
        raise BadInput(f"{path}: no label is a class of the model: {', '.join(model.classes[:5])}")
    lengths = None if encoded.lengths is None else encoded.lengths[rows]
    x = encoded.x[rows]
    said = as_outputs(model, *outputs(model, x, lengths))
    assert said.said is not None
    few = matrix and said.log_p.size <= MATRIX
    p = replace(said.said, target=target, probs=np.exp(np.minimum(said.log_p, 0)) if few else None)
    by = replace(p, confidence=model.evidence(said))
    return Answered(p, by, [row.tobytes() for row in x.numpy()], len(bad))


def doubts(
    p: Predictions, threshold: Threshold | Thresholds, classes: Sequence[str]
) -> Iterator[str]:
    """Parts of the promise that these rows would hardly contradict so much if they held."""
    above, promise = threshold.answers(p.confidence, p.prediction), threshold.promise
    parts = {"accuracy": above}
    if isinstance(threshold, Thresholds):
        kept = [k for k in threshold.parts if k not in {*threshold.refused, *threshold.pooled}]
        parts = {f"accuracy of answers {classes[k]!r}": above & (p.prediction == k) for k in kept}
    counts = {
        name: (promise.accuracy, int(p.correct[rows].sum()), int(rows.sum()))
        for name, rows in parts.items()
    }
    counts["coverage"] = (promise.coverage, int(above.sum()), len(p))
    for name, (share, good, n) in counts.items():
        if share is not None and n and bdtr(good, n, share) < DOUBT / max(1, len(parts)):
            yield (
                f"warning: the promised {name} of {share:g} does not look kept: {good} of {n}; "
                "these rows are unlike those that the model was fitted on"
            )
