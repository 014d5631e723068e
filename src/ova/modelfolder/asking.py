"""Ask a model about inputs in memory or in files: the answers of `ova predict` as a table."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ova.errors import BadInput
from ova.metrics.choice import PLAIN
from ova.modelfolder.answer import Answer, answer, outputs, pictures, rows
from ova.modelfolder.folder import Model
from ova.posthoc.per_class import Thresholds
from ova.predictions import NONE_LABEL
from ova.predictions.columns import Array
from ova.predictions.listing import Table
from ova.predictions.memory import frame, listed
from ova.userdata.given import numbers, said_of
from ova.userdata.rows import CHUNK, FILE, Frame
from ova.userdata.tables import Columns


@dataclass(frozen=True)
class Said:
    """What a model says about one input."""

    input: str
    label: str | None  # None: refused, or a row that cannot be used; `why` says it
    best_guess: str | None  # the label, unless it refuses
    confidence: float | None  # of the best guess; calibrated where the model is
    runner_up: str | None
    runner_up_confidence: float | None
    score: float | None  # what the threshold is compared with
    why: str | None  # there is no label
    nearest: str | None  # training rows, where the score that decides looks at them


def ask(model: Model, inputs: Any, threshold: float | None = None) -> Table[Said]:
    """One row per input, in their order."""
    explain, first, found = model.evidence.bank is not None, 1, list[Said]()
    for piece in frames(model, inputs):
        said = answer(model, piece, first, threshold, explain=explain)
        found += [told(model, each, threshold) for each in said]
        first += len(piece)
    answered = sum(row.label is not None for row in found)
    unused = sum(row.confidence is None for row in found)
    line = f"{len(found)} inputs: {answered} answered, {len(found) - answered - unused} refused"
    line += f", {unused} could not be used" * bool(unused)
    return Table(found, [field.name for field in fields(Said)], line)


def told(model: Model, said: Answer, threshold: float | None) -> Said:
    """An answer with None in the place of a refusal, and why."""
    refused = said.label == NONE_LABEL
    return Said(
        said.input,
        None if refused else said.label,
        said.best_guess,
        said.confidence,
        said.runner_up,
        said.runner_up_confidence,
        said.score,
        refusal(model, said, threshold) if refused else said.problem,
        said.nearest,
    )


def refusal(model: Model, said: Answer, threshold: float | None) -> str:
    """Why an input is refused."""
    if threshold is None and model.threshold.why_not:
        return f"nothing is answered: {model.threshold.promise} {model.threshold.why_not}"
    by_confidence = threshold is not None or model.evidence.name == PLAIN
    name, value = (
        ("confidence", said.confidence) if by_confidence else (model.evidence.name, said.score)
    )
    limit, shown = threshold, model.shown
    if limit is None and isinstance(shown, Thresholds):
        part = shown.parts[model.classes.index(str(said.best_guess))]
        if part.why_not:
            return f"nothing is answered with {said.best_guess!r}: {part.promise} {part.why_not}"
        limit = part.value
    return f"{name} {value:.4g} is not above {shown.value if limit is None else limit:.4g}"


def probabilities(model: Model, inputs: Any) -> Array:
    """The probabilities of all classes for each input, NaN for one that cannot be used."""
    found = [np.zeros((0, len(model.classes)), np.float32)]
    for piece in frames(model, inputs):
        encoded = model.preparation.encode(piece)
        p = model.form.probs(outputs(model, encoded.x, encoded.lengths)[1]).numpy()
        p[list(encoded.bad)] = np.nan
        found.append(p)
    return np.concatenate(found)


def frames(model: Model, inputs: Any) -> Iterator[Frame]:
    """The inputs as the model reads them, some at a time."""
    column, path = model.preparation.column, isinstance(inputs, str | Path)
    if column == FILE:
        names = [inputs] if path else listed(inputs)
        if not all(isinstance(name, str | Path) for name in names):
            raise BadInput("this model was trained on images: give the paths of files or folders")
        return pictures([str(name) for name in names])
    if isinstance(inputs, str) and column:
        raise BadInput("one text comes in a list, [text]; a file as pathlib.Path(name)")
    if path:
        return rows(model, str(inputs))
    with said_of("the inputs"):
        table = frame(inputs)
        return of_table(model, table) if table is not None else in_order(model, listed(inputs))


def of_table(model: Model, table: pa.Table) -> Iterator[Frame]:
    """The columns of a table that the model looks at."""
    kept = [name for name in table.column_names if name in wanted(model)]
    missing = [name for name in wanted(model) if name not in kept]
    if missing:
        have = ", ".join(map(repr, table.column_names))
        raise BadInput(
            f"there is no column {missing[0]!r}, which the model looks at; the columns are {have}"
        )
    if len({*kept}) < len(kept):
        raise BadInput(f"two columns have one name: {', '.join(map(repr, kept))}")
    return (Frame(batch.to_pydict()) for batch in table.select(kept).to_batches(CHUNK))


def wanted(model: Model) -> list[str]:
    """The columns that the model looks at."""
    prepared = model.preparation
    if isinstance(prepared, Columns):
        return [column.name for column in prepared.columns]
    return [prepared.column]


def in_order(model: Model, cells: Sequence[Any]) -> Iterator[Frame]:
    """Texts, or rows of numbers in the order of the columns."""
    names = wanted(model)
    columns: dict[str, Sequence[Any]] = {names[0]: cells}
    if not model.preparation.column and len(cells):
        columns = {name: column.tolist() for name, column in numbers(cells, names).items()}
    starts = range(0, len(cells), CHUNK)
    return (Frame({n: c[i : i + CHUNK] for n, c in columns.items()}) for i in starts)
