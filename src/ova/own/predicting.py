"""A model folder's answers, in order and in chunks; a row that cannot be used is marked."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from ova.data.task import InMemory, plan
from ova.errors import BadInput
from ova.own.folder import Model
from ova.own.frames import Frame, chunks, lines, standard_input, table_lines
from ova.own.gathering import NOTHING
from ova.own.sentences import Tokens
from ova.predictions import Predictions

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
    """One answer per row of the inputs, in their order, whatever their number."""
    at = model.threshold.value if threshold is None else threshold
    for source in inputs:
        first = 1
        for frame in frames(model, source):
            yield from answer(model, frame, first, at)
            first += len(frame)


def frames(model: Model, source: str) -> Iterator[Frame]:
    """The rows of an input, as the kind of the model demands."""
    if source == STDIN:
        if model.kind == "image":
            raise BadInput("images come from files, not from standard input")
        if isinstance(model.preparation, Tokens):
            return lines(standard_input(), BATCH, model.preparation.column)
        return table_lines(standard_input(), "standard input", BATCH)
    if model.kind == "text" and not Path(source).exists():
        raise BadInput(
            f"there is no file {source!r}; to classify text, pipe it: echo ... | ova predict MODEL -"
        )
    found = chunks(Path(source))
    if isinstance(model.preparation, Tokens) and Path(source).suffix.lower() == ".txt":
        column = model.preparation.column
        return (Frame({column: frame.columns["text"]}, frame.bad) for frame in found)
    if (model.kind == "image") != is_images(Path(source)):
        raise BadInput(f"{source}: this model was trained on {model.kind}s")
    return found


def is_images(path: Path) -> bool:
    """Whether a path leads to images."""
    return path.is_dir() or path.suffix.lower() not in (".csv", ".tsv", ".parquet", ".pq", ".txt")


def answer(model: Model, frame: Frame, first: int, threshold: float) -> Iterator[Answer]:
    """The answers for one chunk."""
    encoded = model.preparation.encode(frame)
    names = model.preparation.names(frame, first)
    z = logits(model, encoded.x, encoded.lengths)
    bad = dict.fromkeys(torch.where(~z.isfinite().all(1))[0].tolist(), "numbers too large for the network")
    z[list(bad)] = 0
    bad |= encoded.bad
    said = Predictions.from_logits(
        z.numpy(),
        model.form.log_probs(z).numpy(),
        [0] * len(z),
        normalised=model.form.normalised,
        keep_probs=True,
    )
    assert said.probs is not None
    others = said.probs.copy()
    others[range(len(others)), said.prediction] = -1
    second = others.argmax(1)
    for row, name in enumerate(names):
        if row in bad:
            yield Answer(name, problem=bad[row])
            continue
        c, top, next_ = float(said.confidence[row]), int(said.prediction[row]), int(second[row])
        label = model.classes[top] if c > threshold else NOTHING
        # Of a refused input the best guess is more use than the second best.
        other = next_ if c > threshold else top
        yield Answer(name, label, c, model.classes[other], float(said.probs[row, other]))


def logits(model: Model, x: Tensor, lengths: Tensor | None) -> Tensor:
    """Logits of all rows in order, computed in batches of like lengths."""
    examples = InMemory(x, torch.zeros(len(x), dtype=torch.long), lengths)
    z = torch.empty(len(x), len(model.classes))
    order = plan(examples, BATCH, None)
    for rows, (part, _) in zip(order, examples.batches(order), strict=True):
        z[rows] = model.logits(part)
    return z
