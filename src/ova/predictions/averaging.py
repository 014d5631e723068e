"""Several answers to the same questions as one: the mean of p, of networks or of passes of one network."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from ova.errors import BadInput
from ova.predictions.columns import Array, Predictions
from ova.predictions.parquet import has_matrix, read_chunks, writer


def mean_of(matrices: Iterable[Array]) -> Array:
    """The mean in float64; of matrices that are made one by one, one is in memory at a time.

    >>> mean_of(np.array([[p, 1 - p]]) for p in (0.25, 0.75))
    array([[0.5, 0.5]])
    """
    parts = iter(matrices)
    total, count = next(parts).astype(np.float64), 1
    for part in parts:
        total += part
        count += 1
    return np.asarray(total / count)


def averaged(matrices: Iterable[Array], of: Predictions, *, keep_probs: bool) -> Predictions:
    """What the mean of some matrices says of the rows `of`; one-vs-all stays unnormalised.

    The columns are of the mean in float64. The matrix is kept as float32, as a network's is.
    """
    p = mean_of(matrices)
    said = Predictions.from_probs(p, of.target, id=of.id, normalised=bool(of.normalised))
    return replace(said, probs=p.astype(np.float32)) if keep_probs else said


def average(path: Path, members: Sequence[Path]) -> None:
    """Write the mean of what files say of the same rows, a chunk of each in memory at a time.

    There is no largest logit and no energy in it, because a mean of p has no logits.
    """
    for member in members:
        if not has_matrix(member):
            raise BadInput(f"{member} keeps no probabilities, of which an ensemble is the mean")
    with writer(path) as add:
        for chunks in together(members):
            probs = (chunk.probs for chunk in chunks if chunk.probs is not None)
            add(averaged(probs, chunks[0], keep_probs=True))


def together(members: Sequence[Path]) -> Iterator[tuple[Predictions, ...]]:
    """The next chunk of every file, as long as all are about the same rows and classes."""
    try:
        for chunks in zip(*map(read_chunks, members), strict=True):
            for member, chunk in zip(members[1:], chunks[1:], strict=True):
                if different := difference(chunks[0], chunk):
                    raise BadInput(f"{members[0]} and {member} differ in their {different}")
            yield chunks
    except ValueError as error:
        if isinstance(error, BadInput):
            raise
        names = ", ".join(map(str, members))
        raise BadInput(f"not all are about equally many rows: {names}") from None


def difference(one: Predictions, other: Predictions) -> str:
    """In what two predictions are not about the same; empty where they are."""
    for name in ("classes", "normalised"):
        if getattr(one, name) != getattr(other, name):
            return f"{name}: {getattr(one, name)} and {getattr(other, name)}"
    same = (np.array_equal(getattr(one, name), getattr(other, name)) for name in ("id", "target"))
    return "" if all(same) else "rows: ids and targets must be equal"
