"""The rows of a log that need a person: refused ones, and answers that are more likely wrong than right."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.modelfolder.answer import as_outputs, decide, outputs
from ova.modelfolder.folder import Model
from ova.modelfolder.review.log import Piece, check_scores, pieces, refused
from ova.predictions import NONE_LABEL
from ova.predictions.columns import Array

DOUBTFUL = 0.5  # an answer with a lower confidence is more likely wrong than right
MOST = 8_000  # rows of a review: nobody reads more, and the grouping grows with their square


@dataclass(frozen=True, eq=False)
class Asked:
    """Rows to look at, a column each, and how many others there were."""

    cells: dict[str, list[Any]]  # the columns that the model looks at
    features: Array = field(repr=False)
    logits: Array = field(repr=False)
    label: list[str]
    guess: list[str]
    confidence: list[float]
    score: list[float]
    rows: int  # of the log
    refused: int
    doubtful: int
    bad: int  # that could not be used
    others: int  # that another model answered, left out
    left: int = 0  # to look at, beyond those that are shown

    def __len__(self) -> int:
        return len(self.guess)


def asked(
    model: Model, log: Sequence[str], below: float = DOUBTFUL, images: Path | None = None
) -> Asked:
    """Ask the model about every row of a log, and keep those to look at; of too many the first."""
    said: list[Array] = []
    found: list[Array] = []
    kept: list[tuple[Any, ...]] = []
    features, logits = list[Array](), list[Array]()
    counts = {"rows": 0, "refused": 0, "doubtful": 0, "bad": 0, "others": 0}
    names: tuple[str, ...] = ()
    for piece in pieces(model, log, images):
        counts["others"] += piece.others
        if not len(piece.frame):
            continue
        names = tuple(piece.frame.columns)
        known, f, z, answers = answered(model, piece)
        counts["rows"] += len(piece.frame)
        counts["bad"] += len(piece.frame) - len(known)
        label, guess, sure, score = (list(c) for c in answers)
        if piece.labels is not None and piece.scores is not None:
            label = [str(piece.labels[row] or NONE_LABEL) for row in known]
            said.append(piece.scores[known])
            found.append(np.array(score))
        out = refused(label)
        doubt = ~out & (np.array(sure, np.float64) < below)
        counts["refused"] += int(out.sum())
        counts["doubtful"] += int(doubt.sum())
        look = np.flatnonzero(out | doubt)[: MOST - len(kept)]
        features.append(f[look])
        logits.append(z[look])
        for i in look.tolist():
            cells = tuple(piece.frame.columns[name][known[i]] for name in names)
            kept.append((*cells, label[i], guess[i], sure[i], score[i]))
    if said:
        check_scores(np.concatenate(said), np.concatenate(found))
    if counts["others"] and not counts["rows"]:
        told = f"all {counts['others']} rows are answers of another model"
        raise BadInput(f"{', '.join(log)}: {told}; name the model that gave them")
    if not counts["rows"]:
        raise BadInput(f"{', '.join(log)}: there are no rows in it")
    columns = [list(c) for c in zip(*kept, strict=True)] or [[] for _ in range(len(names) + 4)]
    label, guess, confidence, score = columns[-4:]
    return Asked(
        dict(zip(names, columns, strict=False)),
        np.concatenate(features),
        np.concatenate(logits),
        label, guess, confidence, score,
        **counts,
        left=counts["refused"] + counts["doubtful"] - len(kept),
    )  # fmt: skip


def answered(model: Model, piece: Piece) -> tuple[list[int], Array, Array, Iterator[list[Any]]]:
    """The rows that can be used; their features, logits, labels, guesses, confidences and scores."""
    encoded = model.preparation.encode(piece.frame)
    known = [row for row in range(len(piece.frame)) if row not in encoded.bad]
    lengths = None if encoded.lengths is None else encoded.lengths[known]
    if not known:
        width = model.net.head.in_features
        return [], np.zeros((0, width)), np.zeros((0, len(model.classes))), iter([[]] * 4)
    f, z = outputs(model, encoded.x[known], lengths)
    whole = (f.isfinite().all(1) & z.isfinite().all(1)).numpy()
    f, z, known = f[whole], z[whole], [row for row, ok in zip(known, whole, strict=True) if ok]
    if not known:
        return [], f.numpy(), z.numpy(), iter([[]] * 4)
    rows = as_outputs(model, f, z)
    said = [*decide(model, rows, z, None)]
    return known, f.numpy(), z.numpy(), iter([[row[k] for row in said] for k in (0, 1, 2, 5)])
