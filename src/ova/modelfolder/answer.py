"""Predict with a model folder: answers in order and in chunks; a row that cannot be used is marked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.data.task import InMemory, plan
from ova.errors import BadInput
from ova.modelfolder.confidence import confidence_of
from ova.modelfolder.evidence import BATCH
from ova.modelfolder.folder import Model
from ova.posthoc.sets import Sets
from ova.predictions import NONE, NONE_LABEL, Predictions
from ova.scores import Outputs
from ova.userdata.rows import FILE, Frame, chunks, images_below, in_pieces, standard_input

NEAREST = 3  # training rows that an explanation names
STDIN = "-"


@dataclass(frozen=True)
class Computed:
    """What the network gives for some rows, what they are called, and which of them cannot be used."""

    cells: Sequence[Any]
    rows: Outputs
    z: Tensor
    bad: Mapping[int, str]


@dataclass(frozen=True)
class Answer:
    """What the model says about one input; `problem` says why it says nothing.

    The confidence is that of the best guess, which is the label unless that is "none of the above".
    """

    input: str
    label: str | None = None
    best_guess: str | None = None
    confidence: float | None = None
    runner_up: str | None = None
    runner_up_confidence: float | None = None
    score: float | None = None  # what the threshold of the model is compared with
    problem: str | None = None
    nearest: str | None = None  # training rows, where an explanation was asked for
    set: str | None = None  # the classes that it may belong to, where they were asked for
    kept: Mapping[str, Any] = field(
        default_factory=dict
    )  # columns of the input, by what they become


def answers(
    model: Model,
    inputs: Sequence[str],
    threshold: float | None = None,
    *,
    explain: bool = False,
    sets: Sets | None = None,
    keep: Sequence[str] = (),
) -> Iterator[Answer]:
    """One answer per row of the inputs, in their order, whatever their number.

    Another threshold than the model's is one of the confidences that are given. Explained, each
    answer names the training rows that are nearest to its input. `keep` names columns of the input
    that go with the answers.
    """
    if explain and model.evidence.bank is None:
        raise BadInput(
            f"the model decides by {model.evidence.name}, which looks at no training rows; "
            "those of `ova train --score energy_nearest` (or sirc, nearest, knn) can be named"
        )
    images = model.preparation.column == FILE
    for frames in [pictures(inputs)] if images else (rows(model, source) for source in inputs):
        first = 1
        for frame in frames:
            cells = {kept(name): frame.column(name, "the input", "--keep") for name in keep}
            found = answer(model, frame, first, threshold, explain=explain, sets=sets)
            for row, said in enumerate(found):
                more = {name: column[row] for name, column in cells.items()}
                yield replace(said, kept=more) if more else said
            first += len(frame)


def kept(name: str) -> str:
    """What a column of the input is called beside the answers.

    >>> kept("id"), kept("label")
    ('id', 'label (given)')
    """
    return f"{name} (given)" if name in {f.name for f in fields(Answer)} else name


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


def answer(
    model: Model,
    frame: Frame,
    first: int,
    threshold: float | None,
    *,
    explain: bool = False,
    sets: Sets | None = None,
) -> Iterator[Answer]:
    """The answers for one chunk; `first` is the number of its first row."""
    if len(frame):
        its = compute(model, frame, first)
        yield from said(model, its, threshold, explain=explain, sets=sets)


def compute(model: Model, frame: Frame, first: int = 1) -> Computed:
    """What the network gives for the rows of a chunk, of which there is at least one."""
    encoded, column = model.preparation.encode(frame), model.preparation.column
    cells = frame.columns[column] if column else range(first, first + len(frame))
    f, z = outputs(model, encoded.x, encoded.lengths)
    large = torch.where(~(f.isfinite().all(1) & z.isfinite().all(1)))[0].tolist()
    f[large], z[large] = 0, 0
    bad = {**dict.fromkeys(large, "numbers too large for the network"), **encoded.bad}
    return Computed(cells, as_outputs(model, f, z), z, bad)


def said(
    model: Model,
    computed: Computed,
    threshold: float | None,
    *,
    explain: bool = False,
    sets: Sets | None = None,
) -> Iterator[Answer]:
    """The answers that follow from what the network gives."""
    rows, bad = computed.rows, computed.bad
    near = nearest(model, rows) if explain else [None] * len(rows)
    inside = [None] * len(rows) if sets is None else may_be(model, rows, sets)
    decided = decide(model, rows, computed.z, threshold)
    each = zip(computed.cells, decided, near, inside, strict=True)
    for row, (cell, its, by, of) in enumerate(each):
        name = "" if cell is None else str(cell)
        if row in bad:
            yield Answer(name, problem=bad[row])
        else:
            yield Answer(name, *its, nearest=by, set=of)


def may_be(model: Model, rows: Outputs, sets: Sets) -> Iterator[str]:
    """The classes in the set of each row; "none of the above" where there is none."""
    p = np.exp(np.minimum(rows.log_p, 0))
    return ("; ".join(its) or NONE_LABEL for its in sets.lists(p, model.classes))


def as_outputs(model: Model, f: Tensor, z: Tensor) -> Outputs:
    """Features, logits and what follows from them: what the score that decides may look at."""
    log_p, unknown = model.form.log_probs(z).numpy(), np.full(len(z), NONE)
    p = Predictions.from_logits(z.numpy(), log_p, unknown, normalised=model.form.normalised)
    return Outputs(
        features=f.numpy(),
        logits=z.numpy(),
        log_p=log_p,
        normalised=model.form.normalised,
        predictions=p,
    )


def decide(
    model: Model, rows: Outputs, z: Tensor, threshold: float | None
) -> Iterator[tuple[str, str, float, str, float, float]]:
    """Label, best guess, its confidence, runner-up, its confidence and the score for each row of logits.

    The model's own threshold looks at the score, on which its promise rests: of max p the
    uncalibrated confidence.
    """
    p, others = rows.said, rows.log_p.copy()
    assert p is not None
    others[range(len(others)), p.prediction] = -np.inf
    top, second = torch.from_numpy(p.prediction).long(), torch.from_numpy(others.argmax(1))
    of = partial(confidence_of, model.calibration, model.form, z.double())
    # Uncalibrated it is the very number that is compared, with its rounding.
    sure = torch.from_numpy(p.confidence) if isinstance(model.calibration, str) else of(top)
    score = model.evidence(rows)
    answered = (
        model.threshold.answers(score, p.prediction) if threshold is None else sure > threshold
    )
    columns = (top, second, sure, of(second), answered, score)
    for best, other, c, less, above, value in zip(*(x.tolist() for x in columns), strict=True):
        guess = model.classes[best]
        label = guess if above else NONE_LABEL
        yield label, guess, c, model.classes[other], less, value


def nearest(model: Model, rows: Outputs) -> Iterator[str]:
    """The training rows that are nearest to each row, with their distances (0 to 2), as text."""
    for found in neighbours(model, rows):
        yield "; ".join(f"{example} at {distance:.3f}" for example, distance in found)


def neighbours(model: Model, rows: Outputs) -> Iterator[list[tuple[str, float]]]:
    """The training rows that are nearest to each row, with their distances (0 to 2)."""
    bank, examples = model.evidence.bank, model.evidence.examples
    assert bank is not None
    for block in rows.blocks():
        for distance, place in zip(*bank.near(block.unit, NEAREST), strict=True):
            yield [(examples[i], d) for d, i in zip(distance.tolist(), place.tolist(), strict=True)]


def outputs(model: Model, x: Tensor, lengths: Tensor | None) -> tuple[Tensor, Tensor]:
    """Features and logits of all rows in order, computed in batches of like lengths."""
    examples = InMemory(x, torch.zeros(len(x), dtype=torch.long), lengths)
    order = plan(examples, BATCH, None)
    parts = [model.outputs(part) for part, _ in examples.batches(order)]
    back = torch.cat(order).argsort()
    f, z = (torch.cat(columns)[back] for columns in zip(*parts, strict=True))
    return f, z
