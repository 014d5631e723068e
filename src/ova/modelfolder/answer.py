"""Predict with a model folder: answers in order and in chunks; a row that cannot be used is marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.data.task import InMemory, plan
from ova.errors import BadInput
from ova.modelfolder.confidence import confidence_of
from ova.modelfolder.folder import Model
from ova.predictions import NONE, NONE_LABEL, Predictions
from ova.userdata.rows import FILE, Frame, chunks, images_below, in_pieces, standard_input

BATCH = 128
STDIN = "-"


@dataclass(frozen=True)
class Answer:
    """What the model says about one input; `problem` says why it says nothing."""

    input: str
    label: str | None = None
    confidence: float | None = None
    runner_up: str | None = None
    runner_up_confidence: float | None = None
    problem: str | None = None


def answers(
    model: Model, inputs: Sequence[str], threshold: float | None = None
) -> Iterator[Answer]:
    """One answer per row of the inputs, in their order, whatever their number.

    Another threshold than the model's is one of the confidences that are given.
    """
    images = model.preparation.column == FILE
    for frames in [pictures(inputs)] if images else (rows(model, source) for source in inputs):
        first = 1
        for frame in frames:
            yield from answer(model, frame, first, threshold)
            first += len(frame)


def pictures(inputs: Sequence[str]) -> Iterator[Frame]:
    """Image files as they were named, and all images below folders."""
    if STDIN in inputs:
        raise BadInput("images come from files, not from standard input")
    found = (images_below(Path(i)) if Path(i).is_dir() else [i] for i in inputs)
    return in_pieces(chain.from_iterable(found), BATCH)


def rows(model: Model, source: str) -> Iterator[Frame]:
    """The rows of a file or of standard input, for a model of texts or tables."""
    column, path = model.preparation.column, Path(source)
    if source == STDIN:
        return standard_input(column, BATCH)
    if path.is_dir():
        raise BadInput(f"{source} is a folder; this model was trained on a {model.kind}")
    if column and not path.exists():
        raise BadInput(
            f"there is no file {source!r}; text can be piped: echo ... | ova predict MODEL -"
        )
    return chunks(path, column or "text")


def answer(model: Model, frame: Frame, first: int, threshold: float | None) -> Iterator[Answer]:
    """The answers for one chunk; `first` is the number of its first row."""
    encoded, column = model.preparation.encode(frame), model.preparation.column
    cells = frame.columns[column] if column else range(first, first + len(frame))
    z = logits(model, encoded.x, encoded.lengths)
    large = torch.where(~z.isfinite().all(1))[0].tolist()
    z[large] = 0
    bad = {**dict.fromkeys(large, "numbers too large for the network"), **encoded.bad}
    for row, (cell, said) in enumerate(zip(cells, decide(model, z, threshold), strict=True)):
        name = "" if cell is None else str(cell)
        yield Answer(name, problem=bad[row]) if row in bad else Answer(name, *said)


def decide(
    model: Model, z: Tensor, threshold: float | None
) -> Iterator[tuple[str, float, str, float]]:
    """Label, confidence, runner-up and its confidence for each row of logits.

    The model's own threshold looks at the uncalibrated confidence, on which its promise rests.
    """
    log_p = model.form.log_probs(z).numpy()
    unknown = np.full(len(z), NONE)
    p = Predictions.from_logits(z.numpy(), log_p, unknown, normalised=model.form.normalised)
    others = log_p.copy()
    others[range(len(others)), p.prediction] = -np.inf
    top, second = torch.from_numpy(p.prediction).long(), torch.from_numpy(others.argmax(1))
    of = partial(confidence_of, model.calibration, model.form, z.double())
    # Uncalibrated it is the very number that is compared, with its rounding.
    sure = torch.from_numpy(p.confidence) if isinstance(model.calibration, str) else of(top)
    answered = model.threshold.answers(p.confidence) if threshold is None else sure > threshold
    columns = (top.tolist(), second.tolist(), sure.tolist(), of(second).tolist(), answered.tolist())
    for best, other, c, less, above in zip(*columns, strict=True):
        if above:
            yield model.classes[best], c, model.classes[other], less
        else:  # of a refused input the best guess is more use than the second best
            yield NONE_LABEL, c, model.classes[best], c


def logits(model: Model, x: Tensor, lengths: Tensor | None) -> Tensor:
    """Logits of all rows in order, computed in batches of like lengths."""
    examples = InMemory(x, torch.zeros(len(x), dtype=torch.long), lengths)
    z = torch.empty(len(x), len(model.classes))
    order = plan(examples, BATCH, None)
    for rows, (part, _) in zip(order, examples.batches(order), strict=True):
        z[rows] = model.logits(part)
    return z
