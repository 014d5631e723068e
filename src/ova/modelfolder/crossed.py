"""Few rows judged by cross-fitting: each by a head that has not seen it, in the place of held-out rows."""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric

from ova.data.task import Examples, Task
from ova.errors import BadInput
from ova.metrics.choice import PLAIN, finite
from ova.modelfolder.deciding import Rows, choice, examples, judged
from ova.modelfolder.evidence import MOST, Evidence, Forward, forward_of, head_of, outputs
from ova.modelfolder.held import Held
from ova.posthoc.threshold import Promise
from ova.predictions import NONE, Predictions, write
from ova.predictions.columns import Array
from ova.predictions.sets import TEST, VALIDATION
from ova.scores import SCORES, AffineHead, FittedScores, Outputs, fit
from ova.training.classifier import Classifier
from ova.training.cross_fitting import Crossed, cross_fit, part
from ova.training.run_folder import predictions_path
from ova.training.stages import Stage
from ova.training.together import form_of
from ova.userdata.folds import Folds
from ova.userdata.gather import STRANGE, TO_CHOOSE, Gathered

CROSSED = ", cross-fitted"  # after the name of a set that heads judged which have not seen it
NO_SETS = (
    "its rows are few, so that none was held out; `ova promise MODEL ROWS` fits sets to rows that took "
    "no part in the training"
)


@dataclass(frozen=True, eq=False)
class Judges:
    """The networks of the folds, and what they give for the rows that they have not seen."""

    gathered: Gathered
    crossed: Crossed
    outputs: tuple[Outputs, ...]  # of each fold

    @property
    def folds(self) -> Folds:
        """The folds of the rows."""
        assert self.gathered.folds is not None
        return self.gathered.folds

    def in_order(self, columns: list[Array]) -> Array:
        """What belongs to the rows of each fold, in the order of the rows."""
        order = torch.argsort(self.folds.judged, stable=True).numpy()
        whole: Array = np.concatenate(columns)
        return whole[np.argsort(order, kind="stable")]

    def forwards(self) -> list[Forward]:
        """Features and logits by the network of each fold."""
        return [forward_of(net, self.gathered.task.prepare) for net in self.crossed.nets]


def judges(gathered: Gathered, fabric: Fabric) -> Generator[Stage, None, Judges]:
    """Fit a head beside every fold, and let each answer the rows of its own."""
    folds, task, form = gathered.folds, gathered.task, form_of(gathered.recipe)
    assert folds is not None
    crossed = yield from cross_fit(task, (folds.trained, folds.judged), gathered.recipe, fabric)
    found = []
    for k, net in enumerate(crossed.nets):
        rows = part(task.validation, folds.judged == k)
        found.append(whole(list(outputs(forward_of(net, task.prepare), form, rows))))
    return Judges(gathered, crossed, tuple(found))


def whole(parts: list[Outputs]) -> Outputs:
    """Batches of outputs as one."""
    features, logits, log_p, target = (
        np.concatenate([getattr(each, name) for each in parts])
        for name in ("features", "logits", "log_p", "target")
    )
    return replace(parts[0], features=features, logits=logits, log_p=log_p, target=target)


def to_train(judges: Judges, run: Path) -> Task:
    """The task of the final head: all rows to train on, and what the others said of them already written.

    There is no validation row that it has not seen, so its log says nothing of any.
    """
    for name, p in said(judges).items():
        write(predictions_path(run, name), p)
    task = judges.gathered.task
    none = part(task.validation, torch.zeros(len(task.validation), dtype=torch.bool))
    places = rows_of(judges, judges.gathered.task.validation.y.numpy())
    return replace(task, validation=none, judged=frozenset(places))


def said(judges: Judges) -> dict[str, Predictions]:
    """What the networks of the folds say of every set that they judge."""
    columns = [
        judges.in_order([getattr(each, name) for each in judges.outputs])
        for name in ("logits", "log_p", "target")
    ]
    form = form_of(judges.gathered.recipe)
    every = Predictions.from_logits(*columns, normalised=form.normalised, keep_probs=True)
    places = rows_of(judges, columns[-1])
    return {name: numbered(every.take(rows)) for name, rows in places.items()}


def rows_of(judges: Judges, target: Array) -> dict[str, Array]:
    """The rows of each set among all that are judged: the report tells those of none apart."""
    none, found = target == NONE, dict[str, Array]()
    for name in judges.folds.sets:
        found[name] = np.flatnonzero(~none) if name == TEST else np.arange(len(none))
    if TEST in found and none.any():
        found[STRANGE] = np.flatnonzero(none)
    return found


def numbered(p: Predictions) -> Predictions:
    """Predictions whose rows are numbered from 0, as those of every set are."""
    return replace(p, id=np.arange(len(p)))


def with_strength(gathered: Gathered, judges: Judges) -> Gathered:
    """The same, with the strength that cross-fitting found."""
    recipe = replace(gathered.recipe, weight_decay=judges.crossed.strength)
    return replace(gathered, recipe=recipe)


def decided(net: Classifier, judges: Judges, rows: Rows, asked: str) -> tuple[Evidence, Rows]:
    """The score that decides, fitted on all rows, and the predictions by it.

    A row that was trained on is judged by the score that was fitted beside its fold, for the choice as for the
    threshold; all other rows by the final one.
    """
    gathered, forward = judges.gathered, forward_of(net, judges.gathered.task.prepare)
    task, why, columns = gathered.task, "as asked", dict[str, Array]()
    if asked != PLAIN:
        names = [asked] if asked else None
        try:
            scale = scales(judges, names)
            final = fitted(forward, head_of(net), task.train, judges, (names, scale))
            beside = [*each_fold(judges, (names, scale))]
            columns = {n: by_fold(judges, beside, n) for n in common([final, *beside])}
            if not asked:
                best = choice(columns, strangers(judges, beside, columns), rows[VALIDATION])
                asked, why = best.score, best.why
        except BadInput as error:
            if asked:
                raise
            asked, why = PLAIN, f"no other could be fitted: {error}"
    if asked == PLAIN:
        return Evidence(PLAIN, why), dict(rows)
    chosen = final.only(asked)
    evidence = Evidence(asked, why, chosen, examples(chosen, gathered))
    places = rows_of(judges, rows[VALIDATION].target)
    others = {name: p for name, p in rows.items() if name not in places}
    values = finite(columns[asked])
    own = {n: replace(rows[n], confidence=values[at]) for n, at in places.items()}
    return evidence, {**own, **judged(evidence, forward, gathered, others)}


Wanted = tuple[
    list[str] | None, Mapping[str, Array]
]  # which scores, and what gives joints their scale


def fitted(
    forward: Forward, head: AffineHead | None, train: Examples, judges: Judges, wanted: Wanted
) -> FittedScores:
    """Scores fitted on training rows."""
    names, scale = wanted
    trained = outputs(forward, form_of(judges.gathered.recipe), train)
    return fit(trained, held=scale, head=head, names=names, most=MOST)


def each_fold(judges: Judges, wanted: Wanted) -> Generator[FittedScores, None, None]:
    """The scores beside every fold: by its network, fitted on the rows that this was fitted on."""
    train, trained = judges.gathered.task.train, judges.folds.trained
    for k, (net, forward) in enumerate(zip(judges.crossed.nets, judges.forwards(), strict=True)):
        yield fitted(forward, head_of(net), part(train, trained != k), judges, wanted)


def scales(judges: Judges, names: list[str] | None) -> dict[str, Array]:
    """The values of judged rows of the classes, of all scores that others are made of.

    They give these others their scale, in every fold and in the end the same: a row that a score was fitted on
    would be nearer than any new one.
    """
    asked = {*(names or SCORES)}
    parts = sorted({part for name in asked for part in SCORES[name].joins})
    if not parts:
        return {}
    beside = [*each_fold(judges, (parts if names else None, {}))]
    known = judges.in_order([rows.target for rows in judges.outputs]) != NONE
    there = [name for name in common(beside) if name in parts]
    return {name: finite(by_fold(judges, beside, name))[known] for name in there}


def common(found: list[FittedScores]) -> list[str]:
    """The scores that could be fitted everywhere."""
    return [name for name in found[0].names if all(name in each.names for each in found)]


def by_fold(judges: Judges, beside: list[FittedScores], name: str) -> Array:
    """The value of a score of all judged rows, each by what was fitted beside its fold."""
    parts = [scores(rows)[name] for scores, rows in zip(beside, judges.outputs, strict=True)]
    return judges.in_order(parts)


def strangers(
    judges: Judges, beside: list[FittedScores], names: Mapping[str, Array]
) -> dict[str, Array]:
    """The values of the rows of no class that may choose the score: the mean over the folds."""
    task, form = judges.gathered.task, form_of(judges.gathered.recipe)
    if TO_CHOOSE not in task.evaluations:
        return {}
    far = task.evaluations[TO_CHOOSE]()
    found = [
        scores(whole(list(outputs(forward, form, far))))
        for scores, forward in zip(beside, judges.forwards(), strict=True)
    ]
    return {name: np.mean([finite(each[name]) for each in found], axis=0) for name in names}


def concluded(outcomes: Mapping[str, str], judges: Judges) -> tuple[Held, dict[str, str]]:
    """No sets and no scores, whose promises need held-out rows, and outcomes that say who judged."""
    cross = {TEST} & {*judges.folds.sets}
    named = {f"{n}{CROSSED}" if n in cross else n: o for n, o in outcomes.items()}
    return Held(NO_SETS, np.empty(0)), named


def check(gathered: Gathered, wanted: Promise, every_class: bool) -> None:
    """Refuse a promise where no row is held out."""
    if gathered.folds is not None and (wanted.says or every_class):
        raise BadInput(
            "a promise rests on rows that were held out, and with --cross-fit none is: leave out "
            "--cross-fit, or ask for no promise"
        )
