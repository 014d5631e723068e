"""Predict with a model folder: answers in order and in chunks; a row that cannot be used is marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ova.data.task import InMemory, plan
from ova.errors import BadInput
from ova.modelfolder.confidence import confidence_of
from ova.modelfolder.folder import Model
from ova.predictions import NONE, Predictions
from ova.userdata.gather import NOTHING
from ova.userdata.rows import (
    CHUNK,
    FILE,
    Frame,
    chunks,
    images_below,
    lines,
    standard_input,
    table_lines,
    text_lines,
)
from ova.userdata.texts import Tokens

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
    if model.kind == "image":
        yield from answer_all(model, pictures(inputs), threshold)
        return
    for source in inputs:
        yield from answer_all(model, rows(model, source), threshold)


def answer_all(model: Model, frames: Iterator[Frame], threshold: float | None) -> Iterator[Answer]:
    """The answers for one source after the other."""
    first = 1
    for frame in frames:
        yield from answer(model, frame, first, threshold)
        first += len(frame)


def pictures(inputs: Sequence[str]) -> Iterator[Frame]:
    """Image files as they were named, and all images below folders."""
    if STDIN in inputs:
        raise BadInput("images come from files, not from standard input")
    found = (images_below(Path(i)) if Path(i).is_dir() else [i] for i in inputs)
    files = chain.from_iterable(found)
    while piece := list(islice(files, BATCH)):
        yield Frame({FILE: piece})


def rows(model: Model, source: str) -> Iterator[Frame]:
    """The rows of a file or of standard input, for a model of texts or tables."""
    column = model.preparation.column if isinstance(model.preparation, Tokens) else ""
    if source == STDIN:
        if column:
            return lines(standard_input(), BATCH, column)
        return table_lines(standard_input(), "standard input", BATCH)
    path = Path(source)
    if path.is_dir():
        raise BadInput(f"{source} is a folder; this model was trained on a {model.kind}")
    if column and not path.exists():
        raise BadInput(
            f"there is no file {source!r}; text can be piped: echo ... | ova predict MODEL -"
        )
    if column and path.suffix.lower() == ".txt":
        return text_lines(path, CHUNK, column)
    return chunks(path)


def answer(model: Model, frame: Frame, first: int, threshold: float | None) -> Iterator[Answer]:
    """The answers for one chunk."""
    encoded = model.preparation.encode(frame)
    names = model.preparation.names(frame, first)
    z = logits(model, encoded.x, encoded.lengths)
    bad = dict.fromkeys(
        torch.where(~z.isfinite().all(1))[0].tolist(), "numbers too large for the network"
    )
    z[list(bad)] = 0
    bad |= encoded.bad
    decided = decide(model, z, threshold)
    for row, name in enumerate(names):
        if row in bad:
            yield Answer(name, problem=bad[row])
            continue
        best, sure = model.classes[decided.top[row]], float(decided.sure[row])
        if decided.answered[row]:
            yield Answer(
                name, best, sure, model.classes[decided.second[row]], float(decided.less[row])
            )
        else:  # of a refused input the best guess is more use than the second best
            yield Answer(name, NOTHING, sure, best, sure)


@dataclass(frozen=True)
class Decided:
    """The likeliest class of each row and the second, their confidences, and whether to answer."""

    top: Tensor
    second: Tensor
    sure: Tensor
    less: Tensor
    answered: Tensor


def decide(model: Model, z: Tensor, threshold: float | None) -> Decided:
    """What to say about each row of logits.

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
    sure = torch.from_numpy(p.confidence) if model.calibration is None else of(top)
    own = torch.from_numpy(model.threshold.answers(p.confidence))
    return Decided(top, second, sure, of(second), own if threshold is None else sure > threshold)


def logits(model: Model, x: Tensor, lengths: Tensor | None) -> Tensor:
    """Logits of all rows in order, computed in batches of like lengths."""
    examples = InMemory(x, torch.zeros(len(x), dtype=torch.long), lengths)
    z = torch.empty(len(x), len(model.classes))
    order = plan(examples, BATCH, None)
    for rows, (part, _) in zip(order, examples.batches(order), strict=True):
        z[rows] = model.logits(part)
    return z
