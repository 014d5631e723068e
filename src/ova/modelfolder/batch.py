"""Answers to a batch of inputs at once: those that belong to no class are named by all together."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from ova.errors import BadInput
from ova.modelfolder.answer import Answer
from ova.modelfolder.held import Held
from ova.posthoc.outside import outside
from ova.predictions import NONE_LABEL


def named(answers: Iterable[Answer], kept: Held | None, fdr: float) -> Iterator[Answer]:
    """The answers, of which those that belong to no class are refused, with at most this share wrong.

    They are given as if nothing were refused, and their scores decide.
    """
    if kept is None:
        raise BadInput(
            "an earlier version of ova trained the model, without scores; train it again"
        )
    if not len(kept.scores):
        raise BadInput(
            "no row was held out when the model was trained, so --fdr has nothing to compare with; "
            "`ova promise MODEL ROWS` fits one to rows that took no part in the training"
        )
    rows = list(answers)
    values = np.array([row.score for row in rows if row.problem is None], np.float64)
    is_named = iter(outside(values, kept.scores, fdr).named.tolist())
    for row in rows:
        if row.problem is None and next(is_named):
            yield replace(row, label=NONE_LABEL)
        else:
            yield row
