"""Look at a trained model for its page: its confusions, sure mistakes, doubts and odd labels."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from ova.data.task import InMemory, Task, plan
from ova.files import Row
from ova.metrics.choice import PLAIN
from ova.metrics.evaluate import evaluate
from ova.modelfolder.confidence import confidence_of
from ova.modelfolder.evidence import BATCH, Forward
from ova.modelfolder.promise import unseen
from ova.posthoc.calibration import Top
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import NONE, NONE_LABEL, Predictions, SetName
from ova.predictions.columns import Array
from ova.predictions.sets import TEST, VALIDATION
from ova.report.inspection import CONFIDENCE, OWN, Confusion, Example, Inspection, Sweep
from ova.training.run_folder import Run
from ova.training.together import form_of
from ova.userdata.gather import STRANGE, Gathered

TRAIN, CARRIES = "train", "calibration"
SHOWN = 12  # inputs of each kind on the page
SUSPECTS = 24  # rows whose label looks wrong
LOOKED_AT = 10_000  # training rows whose labels are looked at, by lot
SURE = 0.5  # confidence in another class from which on a label looks wrong
POSITIONS = 200  # of the slider
BINS = 40  # of the scale that decides

Rows = Mapping[str, Predictions]


@dataclass(frozen=True)
class Fitted:
    """What was fitted on held-out rows: when it answers, on both scales, and how sure it is."""

    threshold: Threshold | Thresholds
    shown: Threshold | Thresholds  # on the scale of the calibrated confidences, where they decide
    calibration: Top | str
    score: str  # that decides
    task: Task  # on which the network was trained: the inputs, or their features


@dataclass(frozen=True)
class Seen:
    """What a model says of every set."""

    gathered: Gathered
    forward: Forward
    fitted: Fitted
    said: Rows  # with calibrated confidences
    judged: Rows  # with the value that decides in the place of the confidence

    @property
    def scale(self) -> Rows:
        """The predictions with what users compare the threshold with."""
        return self.said if self.fitted.score == PLAIN else self.judged

    def answers(self, name: str) -> Array:
        """Which rows of a set are answered."""
        p = self.judged[name]
        return np.asarray(self.fitted.threshold.answers(p.confidence, p.prediction))


def inspect(
    gathered: Gathered, run: Run, forward: Forward, fitted: Fitted, rows: Rows, judged: Rows
) -> Inspection:
    """Everything that the page shows; `judged` are the rows by the score that decides."""
    top, task, recipe = fitted.calibration, gathered.task, gathered.recipe
    said = {n: top.apply(p) if isinstance(top, Top) and len(p) else p for n, p in rows.items()}
    seen = Seen(gathered, forward, fitted, said, judged)
    test, doubt = rows[TEST], np.argsort(judged[TEST].confidence, kind="stable")[:SHOWN]
    values, curves = evaluate({TEST: said[TEST]})
    classes, several = task.classes, f", {recipe.members} networks" * (recipe.members > 1)
    return Inspection(
        title=run.experiment,
        about=f"A classifier of {len(classes)} classes ({gathered.kind}s), learned from "
        f"{len(task.train):,} rows by {recipe.model}{several}, last layer {recipe.formulation}.",
        run=replace(run, label=OWN, seed=0, measurements=values, curves=curves),
        classes=classes,
        sweep=sweep(seen, fitted.threshold, fitted.shown)
        if isinstance(fitted.threshold, Threshold) and isinstance(fitted.shown, Threshold)
        else None,
        confusion=Confusion(
            target=test.target.astype(np.int64),
            guess=test.prediction.astype(np.int64),
            answered=seen.answers(TEST),
        ),
        mistakes=examples(seen, TEST, surest(said[TEST], ~test.correct)),
        doubtful=examples(seen, TEST, doubt),
        outside={
            name: examples(seen, name, surest(p, np.full(len(p), True)))
            for name, p in judged.items()
            if SetName(name).outside and len(p)
        },
        suspects=suspects(seen),
        facts=facts_of(gathered, run),
    )


def surest(p: Predictions, among: Array) -> Array:
    """The rows among some with the largest confidence, the largest first."""
    rows = np.flatnonzero(among)
    return np.asarray(rows[np.argsort(-p.confidence[rows], kind="stable")][:SHOWN])


def examples(seen: Seen, name: str, rows: Array) -> list[Example]:
    """Rows of a set, as the page shows them."""
    p, answered = seen.said[name], seen.answers(name)
    return [
        shown(seen, name, row, (int(p.prediction[row]), float(p.confidence[row])), answered[row])
        for row in rows.tolist()
    ]


def shown(
    seen: Seen, name: str, row: int, said: tuple[int, float], answered: bool | None = None
) -> Example:
    """One input with its label, the best guess and the confidence in it."""
    gathered, (guess, confidence) = seen.gathered, said
    x, y = at(examples_of(gathered.task, name), row)
    origin, classes = gathered.origins.get(name), gathered.task.classes
    given = origin.label(row) if origin else ""
    return Example(
        place="" if origin is None else origin.place(row),
        text=(origin.cell(row) if origin else "") or gathered.preparation.words(x),
        picture=gathered.preparation.picture(x),
        label=given or (NONE_LABEL if y == NONE else classes[y]),
        guess=classes[guess],
        confidence=confidence,
        known=y != NONE,
        answered=None if answered is None else bool(answered),
    )


def examples_of(task: Task, name: str) -> InMemory:
    """The encoded rows of a set."""
    if name in (TRAIN, VALIDATION):
        return task.train if name == TRAIN else task.validation  # type: ignore[return-value]
    return task.evaluations[name]()  # type: ignore[return-value]


def at(examples: InMemory, row: int) -> tuple[torch.Tensor, int]:
    """One encoded row and its target."""
    return examples.x[row], int(examples.y[row])


def suspects(seen: Seen) -> list[Example]:
    """Rows of training, validation and calibration whose label the model surely disagrees with.

    Where no row was held out, each was judged by a head that had not seen it, and comes once. They are ranked by log p of the best guess less log p of the label.
    """
    found = [*contradicted(seen, VALIDATION)]
    if seen.gathered.folds is None:  # else all rows are among the judged ones
        found += [*contradicted(seen, CARRIES), *learned(seen)]
    found.sort(key=lambda each: (-each[0], each[1], each[2]))
    return [
        replace(made, place=f"{made.place}, {name}")
        for _, name, row, said in found[:SUSPECTS]
        for made in [shown(seen, name, row, said)]
    ]


Contradicted = tuple[float, str, int, tuple[int, float]]  # by how much, the set, the row, the guess


def contradicted(seen: Seen, name: str) -> Iterator[Contradicted]:
    """Held-out rows of a class that are surely said to be of another."""
    p, c = seen.said[name], seen.said[name].confidence
    raw = seen.judged[name] if seen.fitted.score == PLAIN else None
    if p.log_p is None:
        return
    for row in np.flatnonzero((p.target != NONE) & ~p.correct & (c > SURE)).tolist():
        best = float(c[row]) if raw is None else float(raw.confidence[row])
        gap = math.log(max(best, 1e-300)) - float(p.log_p[row])
        yield gap, name, row, (int(p.prediction[row]), float(c[row]))


@torch.inference_mode()
def learned(seen: Seen) -> Iterator[Contradicted]:
    """The same of training rows, which no file has predictions of: they are gone through once more."""
    gathered, form = seen.gathered, form_of(seen.gathered.recipe)
    train = examples_of(seen.fitted.task, TRAIN)
    draw = torch.Generator().manual_seed(gathered.recipe.seed)
    some = torch.randperm(len(train), generator=draw)[:LOOKED_AT].sort().values
    batches = [some[rows] for rows in plan(part_of(train, some), BATCH, None)]
    for rows, (x, y) in zip(batches, train.batches(batches), strict=True):
        z = seen.forward(x)[1].cpu().double()
        log_p, top = form.log_probs(z), z.argmax(-1)
        sure = confidence_of(seen.fitted.calibration, form, z, top)
        own = log_p.gather(-1, y.clamp(min=0)[:, None])[:, 0]
        gap = log_p.gather(-1, top[:, None])[:, 0] - own
        for i in torch.where((y != NONE) & (top != y) & (sure > SURE))[0].tolist():
            yield float(gap[i]), TRAIN, int(rows[i]), (int(top[i]), float(sure[i]))


def part_of(examples: InMemory, rows: torch.Tensor) -> InMemory:
    """Targets and lengths of some rows: what a plan of batches looks at."""
    lengths = None if examples.lengths is None else examples.lengths[rows]
    return InMemory(examples.y[rows], examples.y[rows], lengths)


def sweep(seen: Seen, limit: Threshold, shown: Threshold) -> Sweep:
    """What thresholds do to the rows that the fitted one does not rest on; each set by itself.

    They are compared where the fitted one was promised, and called by the scale that users meet.
    """
    places = unseen(seen.judged, limit, seen.gathered.recipe.seed)
    judged = {name: seen.judged[name].take(rows) for name, rows in places.items()}
    told = {name: seen.scale[name].take(rows) for name, rows in places.items()}
    tested = [name for name in (TEST, STRANGE) if name in places]
    value, right = column(judged, tested), np.concatenate([judged[n].correct for n in tested])
    ends = (limit.value, shown.value)
    grid = positions(column(judged, places), column(told, places), ends)
    answered = [value > t for t, _ in grid]
    outside = {name: column(judged, [name]) for name in places if name != TEST}
    bars = column(told, tested)
    sets = {"right": bars[right], "wrong": bars[~right]}
    sets |= {SetName(name).short: column(told, [name]) for name in outside}
    scale = CONFIDENCE if seen.fitted.score == PLAIN else seen.fitted.score
    return Sweep(
        scale=scale,
        grid=[called for _, called in grid],
        start=place_of(limit.value, [t for t, _ in grid]),
        answered=[float(kept.mean()) for kept in answered],
        accuracy=[float(right[kept].mean()) if kept.any() else None for kept in answered],
        through={n: [float((v > t).mean()) for t, _ in grid] for n, v in outside.items()},
        bins=bins(sets, scale),
    )


def column(rows: Rows, names: Iterable[str]) -> Array:
    """The confidences of some sets, one after another."""
    return np.concatenate([rows[name].confidence.astype(np.float64) for name in names])


def place_of(value: float, grid: Sequence[float]) -> int:
    """The place of the fitted threshold; of an infinite one the first or the last."""
    if value in grid:
        return grid.index(value)
    return 0 if value < 0 else len(grid) - 1


def positions(
    values: Array, called: Array, fitted: tuple[float, float]
) -> list[tuple[float, float]]:
    """Places of the slider, each with what it is called: below all values, at some, at the fitted.

    >>> positions(np.array([-1.0, 3.0]), np.array([0.25, 0.75]), (2.0, 0.5))
    [(-1.04, 0.0), (-1.0, 0.25), (2.0, 0.5), (3.0, 0.75)]
    """
    order = np.argsort(values, kind="stable")
    order = order[np.isfinite(values[order])]
    found = {six(fitted[1]): fitted[0]} if math.isfinite(fitted[0]) else {}
    if not len(order):
        return [(t, name) for name, t in found.items()] or [(0.0, 0.0)]
    some = order[np.unique(np.linspace(0, len(order) - 1, POSITIONS).round().astype(int))]
    for row in (
        order[-1],
        *some.tolist(),
    ):  # two that look alike are one; at the last all is refused
        found.setdefault(six(called[row]), float(values[row]))
    names, below = sorted(found), min(found.values())
    room = max(1e-6, 0.01 * (max(found.values()) - below))
    shares = names[0] > 0 and names[-1] <= 1  # the least confidence is 0
    least = 0.0 if shares else six(names[0] - max(1e-6, 0.01 * (names[-1] - names[0])))
    return [(below - room, least), *((found[name], name) for name in names)]


def six(value: float) -> float:
    """Six digits are what a page shows."""
    return float(f"{value:.6g}")


def bins(sets: Mapping[str, Array], scale: str) -> list[Row]:
    """How many rows of each set lie where on the scale; the few farthest away are put at its ends."""
    every = np.concatenate([*sets.values()])
    if not len(every):
        return []
    low, high = (0.0, 1.0) if scale == CONFIDENCE else np.quantile(every, [0.005, 0.995]).tolist()
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    rows = []
    for name, values in sets.items():
        counts = np.histogram(values.clip(edges[0], edges[-1]), edges)[0]
        for k, count in enumerate(counts.tolist() if len(values) else []):
            ends = {"lower": six(edges[k]), "upper": six(edges[k + 1])}
            rows.append(
                {"scale": scale, "set": name, **ends, "count": count, "share": count / len(values)}
            )
    return rows  # fmt: skip


def facts_of(gathered: Gathered, run: Run) -> dict[str, str]:
    """How it was trained, in lines."""
    recipe, task = gathered.recipe, gathered.task
    best = min(run.log, key=lambda row: row.get("validation_loss", math.inf), default={})
    seconds = run.manifest.get("seconds", {})
    rows = {"train": len(task.train), "validation": len(task.validation)}
    rows |= {SetName(name).short or name: len(make()) for name, make in task.evaluations.items()}
    if gathered.folds is not None:  # the same rows, judged by heads that have not seen them
        rows = {n: c for n, c in rows.items() if n not in gathered.folds.sets}
        rows["cross-fitted"] = len(gathered.folds.judged)
    facts = {
        "data": run.experiment,
        "rows": ", ".join(f"{name} {count:,}" for name, count in rows.items()),
        "network": recipe.model,
        "last layer": recipe.formulation,
        "networks": str(recipe.members) if recipe.members > 1 else "",
        "epochs": f"{len(run.log)} of {recipe.epochs} planned, the best {best.get('epoch', '-')}"
        if run.log
        else str(recipe.epochs),
        "optimiser": f"{recipe.optimiser}, learning rate {recipe.lr:g}, {recipe.schedule}",
        "batch size": str(recipe.batch_size),
        "seed": str(recipe.seed),
        "seconds": ", ".join(f"{stage} {value:g}" for stage, value in seconds.items()),
        "started": str(run.manifest.get("started", "")),
        "command": str(run.manifest.get("command", "")),
        "notes": "; ".join(gathered.notes),
    }
    return {name: value for name, value in facts.items() if value}
