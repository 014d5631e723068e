"""Give a model other classes: features, head, score, calibration and promise, in this order."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ova.data.task import InMemory, Task
from ova.errors import BadInput
from ova.modelfolder import each_class
from ova.modelfolder.again import doubts
from ova.modelfolder.deciding import decided, judged
from ova.modelfolder.evidence import head_of
from ova.modelfolder.extend.change import Change
from ova.modelfolder.extend.head import chosen
from ova.modelfolder.extend.labelled import TRAIN, LabelledRows, parts_of
from ova.modelfolder.extend.moved import Moved, Said, by_class, compared
from ova.modelfolder.extend.stored import Rows, Stored
from ova.modelfolder.folder import Decides, Model
from ova.modelfolder.held import held
from ova.modelfolder.promise import TARGETS, promised
from ova.modelfolder.train import CARRIES, Trained, summed_up
from ova.nn.formulation import Formulation
from ova.posthoc.per_class import EachClass, Thresholds
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import NONE, Predictions
from ova.predictions.columns import Array
from ova.predictions.sets import TEST, VALIDATION
from ova.training.classifier import Classifier
from ova.training.recipe import OWN, Recipe
from ova.training.rows import Labelled
from ova.userdata.gather import STRANGE, Gathered, itself

STAYED, CAME, NONE_OF = "classes that stay", "classes that are new", "none of the classes"


@dataclass(frozen=True)
class Asked:
    """How a model is to be changed, beside which classes it is to have."""

    wanted: Promise | None = None  # None: what was promised before
    score: str = ""  # empty: the one that was chosen before
    refit: bool | None = None  # None: where rows that stay claim rows of new classes


@dataclass(frozen=True, eq=False)
class Extended:
    """A model with other classes, and what moved."""

    net: Classifier
    change: Change
    trained: Trained
    decides: Decides
    sets: Mapping[str, Rows]  # of all rows, with the classes of after
    named: tuple[str, ...]
    moved: Mapping[str, Moved]
    classes: tuple[Moved, ...]
    added: Counter[str]
    none: int
    notes: tuple[str, ...]


def extend(
    model: Model, stored: Stored, found: LabelledRows | None, change: Change, asked: Asked
) -> Extended:
    """Fit what is new on rows to train on; what answers and what is promised on rows held out."""
    sets, named, notes = joined(stored, found, change)
    check_new(change, sets[TRAIN], found)
    train, validation = (Labelled(sets[n].f, sets[n].y) for n in (TRAIN, VALIDATION))
    form = model.form
    head, word = chosen(model.net.head, form, change, train, validation, asked.refit)
    net = Classifier(model.net.backbone, head).eval()
    gathered = as_gathered(model, sets, named, change, stored.seed)
    rows = {name: said(form, head(part.f), part.y) for name, part in of_others(sets).items()}
    score = asked.score or model.evidence.name
    evidence = decided(partial(forward, head), head_of(net), gathered, rows, score)
    evidence = replace(evidence, why=evidence.why if asked.score else model.evidence.why)
    by_score = judged(evidence, partial(forward, head), gathered, rows)
    threshold = threshold_of(model, by_score, asked.wanted, stored.seed)
    trained = summed_up(rows, by_score, evidence, threshold, gathered)
    kept = held(rows[CARRIES], by_score[CARRIES])
    moved, classes = what_moved(model, sets, by_score, threshold, change)
    check_kept(by_score[TEST], threshold, change)
    return Extended(
        net=net,
        change=change,
        trained=trained,
        decides=Decides(evidence, threshold, trained.calibration, kept),
        sets=sets,
        named=named,
        moved=moved,
        classes=tuple(classes),
        added=Counter() if found is None else found.counts,
        none=0 if found is None else found.none,
        notes=(*notes, *filter(None, [word])),
    )


def forward(head: Any, f: Tensor) -> tuple[Tensor, Tensor]:
    """Features and logits of features."""
    with torch.inference_mode():
        return f, head(f)


def joined(
    stored: Stored, found: LabelledRows | None, change: Change
) -> tuple[dict[str, Rows], tuple[str, ...], tuple[str, ...]]:
    """The model's own rows and the labelled ones, set by set, with the classes of after."""
    sets = {name: replace(rows, y=change.target(rows.y)) for name, rows in stored.sets.items()}
    sets = without_strangers(sets)
    if found is None or not len(found.rows):
        return sets, stored.named, () if found is None else found.notes
    parts, named = parts_of(found, stored.seed)
    number = {name: k for k, name in enumerate(change.after)}
    into = torch.tensor([*(number.get(name, NONE) for name in found.names), NONE])
    for name, rows in parts.items():
        more = replace(rows, y=into[rows.y])
        sets[name] = sets[name].and_also(more) if name in sets else more
    return sets, (*stored.named, *named), found.notes


def without_strangers(sets: dict[str, Rows]) -> dict[str, Rows]:
    """Test rows of a class that was removed are of none now, and in the set of those."""
    test = sets[TEST]
    away = test.y == NONE
    if not away.any():
        return sets
    gone, stays = test.take(torch.where(away)[0]), test.take(torch.where(~away)[0])
    strange = sets[STRANGE].and_also(gone) if STRANGE in sets else gone
    return {**sets, TEST: stays, STRANGE: strange}


def check_new(change: Change, train: Rows, found: LabelledRows | None) -> None:
    """Refuse a new class that no row to train on has."""
    counts = Counter() if found is None else found.counts
    for k in change.new:
        if not (train.y == k).any():
            name = change.after[k]
            raise BadInput(
                f"the new class {name!r} has no row to train on: of its {counts[name]} rows, some are held "
                "out by lot to promise and to report on; some ten different ones are needed"
            )


def of_others(sets: Mapping[str, Rows]) -> dict[str, Rows]:
    """All sets but the rows to train on."""
    return {name: rows for name, rows in sets.items() if name != TRAIN}


def as_gathered(
    model: Model, sets: Mapping[str, Rows], named: tuple[str, ...], change: Change, seed: int
) -> Gathered:
    """The rows as a task whose inputs are features, for what chooses scores and promises.

    Of the recipe only seed, formulation and members are looked at there.
    """
    examples = {name: InMemory(rows.f, rows.y) for name, rows in sets.items()}
    train, validation = examples.pop(TRAIN), examples.pop(VALIDATION)
    task = Task(
        classes=change.after,
        shape=tuple(train.x.shape[1:]),
        train=train,
        validation=validation,
        evaluations={name: partial(itself, part) for name, part in examples.items()},
        prepare=unchanged,
    )
    recipe = Recipe(
        experiment="extended",
        data=OWN,
        model="mlp",
        formulation=model.facts["formulation"],
        members=int(model.facts.get("members", 1)),
        seed=seed,
        epochs=1,
        lr=1.0,
    )
    return Gathered(model.kind, task, recipe, model.preparation, (), lambda row: named[row])


def unchanged(x: Tensor) -> Tensor:
    """Features are what a head takes."""
    return x


def said(form: Formulation, z: Tensor, y: Tensor) -> Predictions:
    """Predictions from logits."""
    z = z.detach()
    log_p = form.log_probs(z).numpy()
    target = y.numpy().astype(np.int64)
    return Predictions.from_logits(
        z.numpy(), log_p, target, normalised=form.normalised, keep_probs=True
    )


def threshold_of(
    model: Model, rows: Mapping[str, Predictions], wanted: Promise | None, seed: int
) -> Threshold | Thresholds:
    """The threshold for what is asked for, else for what was promised before.

    An accuracy that nobody asked for is tried as it was chosen then, with a coverage where there is
    room; less than before is refused.
    """
    before = model.threshold.promise
    if wanted is not None and wanted.says:
        if isinstance(wanted, EachClass):
            return each_class.promised(rows[VALIDATION], rows[CARRIES], wanted)
        return promised(rows, wanted, seed)
    if isinstance(model.threshold, Thresholds):
        each = EachClass(
            before.accuracy, None, None, before.certainty, pool=bool(model.threshold.pooled)
        )
        return each_class.promised(rows[VALIDATION], rows[CARRIES], each)
    if before.leak is not None or before.accuracy not in TARGETS:
        return promised(rows, before, seed)
    found = promised(rows, Promise(certainty=before.certainty), seed, before.accuracy)
    if found.promise.accuracy is None or found.promise.accuracy < before.accuracy:
        raise BadInput(
            f"the promise of before, {before}, cannot be kept with these classes (what can be: "
            f"{found.promise}); label more rows, fit all rows of the head with --refit, or say what "
            "is to be promised, such as --accuracy 0.9"
        )
    return found


def what_moved(
    model: Model,
    sets: Mapping[str, Rows],
    rows: Mapping[str, Predictions],
    threshold: Threshold | Thresholds,
    change: Change,
) -> tuple[dict[str, Moved], list[Moved]]:
    """The test rows of classes that stay, of new ones and of none, before and after."""
    test, kept = sets[TEST], [name for name in change.after if name in change.before]
    target = np.array(change.after, dtype=object)[test.y.numpy()]
    before, after = was(model, test.f), Said.of(rows[TEST], threshold, change.after)
    stays = np.isin(target.astype(str), kept) if len(target) else np.zeros(0, bool)
    found = {STAYED: compared(target, before, after, STAYED, stays)}
    if not stays.all():
        found[CAME] = compared(target, before, after, CAME, ~stays)
    if STRANGE in sets and len(sets[STRANGE]):
        nothing = np.full(len(sets[STRANGE]), None, dtype=object)
        now = Said.of(rows[STRANGE], threshold, change.after)
        every = np.ones(len(nothing), bool)
        found[NONE_OF] = compared(nothing, was(model, sets[STRANGE].f), now, NONE_OF, every)
    return found, by_class(target, before, after, kept)


def was(model: Model, f: Tensor) -> Said:
    """What the model says before, of features."""
    from ova.modelfolder.answer import as_outputs

    if not len(f):
        return Said(np.zeros(0, dtype=object), np.zeros(0, bool))
    with torch.inference_mode():
        rows = as_outputs(model, f, model.net.head(f).float())
    assert rows.said is not None
    p = replace(rows.said, confidence=model.evidence(rows))
    return Said.of(p, model.threshold, model.classes)


def check_kept(test: Predictions, threshold: Threshold | Thresholds, change: Change) -> None:
    """Refuse a model whose promise does not look kept for the classes that stay."""
    numbers = [k for k, name in enumerate(change.after) if name in change.before]
    stays: Array = np.isin(test.target, numbers)
    if threshold.why_not or not stays.any():
        return
    broken = [*doubts(test.take(stays), threshold, change.after)]
    if broken:
        told = broken[0].removeprefix("warning: ").partition(";")[0]
        raise BadInput(
            f"for the classes that stay {told} on the test rows; nothing was written. Look at the "
            "labels, label more rows, or fit all rows of the head with --refit"
        )


def lines(found: Extended) -> Iterator[str]:
    """What was done, before what moved."""
    change = found.change
    new = [change.after[k] for k in change.new]
    if new:
        counts = ", ".join(f"{name} ({found.added[name]} rows)" for name in new[:10])
        yield f"{len(new)} new rows of the head: {counts}{', ...' * (len(new) > 10)}"
    if change.removed:
        yield f"removed: {', '.join(change.removed)}; their rows are examples of none of the classes now"
    for names, into in change.merged:
        yield f"merged: {', '.join(names)} into {into}"
    old = sum(found.added.values()) - sum(found.added[name] for name in new)
    if old:
        yield f"{old} labelled rows are of classes that were there: they count for score, confidence and promise"
    if found.none:
        yield f"{found.none} labelled rows are examples of none of the classes"
