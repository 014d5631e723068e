"""Which score decides in a model folder: fitted on the training rows, chosen on the validation rows."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from ova.data.task import Examples
from ova.errors import BadInput
from ova.metrics.choice import PLAIN, Choice, choose, finite
from ova.modelfolder.evidence import (
    MOST,
    Evidence,
    Forward,
    bank_of,
    order_of,
    outputs,
    values,
)
from ova.predictions import NONE, Predictions
from ova.predictions.sets import VALIDATION
from ova.scores import AffineHead, FittedScores, Outputs, fit
from ova.training.together import form_of
from ova.userdata.gather import TO_CHOOSE, Gathered

Rows = Mapping[str, Predictions]


def decided(
    forward: Forward, head: AffineHead | None, gathered: Gathered, rows: Rows, asked: str
) -> Evidence:
    """The score that was asked for, or the one that refuses best on the validation rows.

    Besides these, only rows of none of the classes that carry no promise and are in no report are
    looked at: those among the validation rows, and a third of `--outside`.
    """
    task, form = gathered.task, form_of(gathered.recipe)
    if asked == PLAIN:
        return Evidence(PLAIN, "as asked")
    held = list(outputs(forward, form, task.validation))
    try:
        trained = outputs(forward, form, task.train)
        names = [asked] if asked else None
        fitted = fit(trained, held=held, head=head, names=names, most=MOST)
        far = task.evaluations[TO_CHOOSE]() if TO_CHOOSE in task.evaluations else None
        strange = {} if asked or far is None else values(fitted, outputs(forward, form, far), far)
        why = "as asked"
        if not asked:
            said = choice(values(fitted, held, task.validation), strange, rows[VALIDATION])
            asked, why = said.score, said.why
    except BadInput as error:
        if asked:
            raise
        return Evidence(PLAIN, f"no other could be fitted: {error}")
    if asked == PLAIN:
        return Evidence(PLAIN, why)
    chosen = fitted.only(asked)
    return Evidence(asked, why, chosen, examples(chosen, gathered))


def choice(
    held: Mapping[str, np.ndarray], strange: Mapping[str, np.ndarray], p: Predictions
) -> Choice:
    """By validation rows of the classes, and by rows of none where there are any."""
    inside = p.target != NONE
    outside = {n: np.concatenate([v[~inside], strange.get(n, v[:0])]) for n, v in held.items()}
    return choose({n: v[inside] for n, v in held.items()}, p.correct[inside], outside)


def examples(scores: FittedScores, gathered: Gathered) -> tuple[str, ...]:
    """What the training rows are called that a score looks at; they were counted without those of none."""
    bank, train = bank_of(scores), gathered.task.train
    if bank is None:
        return ()
    order = order_of(train)
    counted = order[train.y.numpy()[order] != NONE]
    return tuple(gathered.named(int(row)) for row in counted[bank.row])


def judged(
    evidence: Evidence, forward: Forward, gathered: Gathered, rows: Rows
) -> dict[str, Predictions]:
    """The same predictions, with the value of the score in the place of the confidence.

    A threshold and its promise need no more than a ranking.
    """
    scores = evidence.scores
    if scores is None:
        return dict(rows)
    task, form = gathered.task, form_of(gathered.recipe)

    def by(name: str, p: Predictions) -> Predictions:
        set_: Examples = task.validation if name == VALIDATION else task.evaluations[name]()
        found: Iterable[Outputs] = outputs(forward, form, set_)
        return replace(p, confidence=finite(values(scores, found, set_)[evidence.name]))

    return {name: by(name, p) for name, p in rows.items()}
