"""Train a model folder: the stages of every run, then threshold, calibration and the page."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree

from lightning_fabric import Fabric

from ova.data.task import Task
from ova.errors import BadInput, pick
from ova.files import beside, read_object
from ova.metrics import METRICS
from ova.modelfolder import confidence, crossed, each_class, names
from ova.modelfolder import folder as model_folder
from ova.modelfolder.class_table import PerClass, per_class, rows_of
from ova.modelfolder.crossed import Judges
from ova.modelfolder.deciding import decided, judged
from ova.modelfolder.evidence import Evidence, forward_of, head_of
from ova.modelfolder.frozen import HEAD, join, on_features
from ova.modelfolder.held import Held, held, tried
from ova.modelfolder.inspecting import Fitted, inspect
from ova.modelfolder.planning import planned
from ova.modelfolder.promise import check, outcomes, promised, unpromised
from ova.posthoc.calibration import Top
from ova.posthoc.per_class import EachClass, Thresholds
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import Predictions, SetName, read
from ova.predictions.sets import TEST, VALIDATION
from ova.report.model import ModelFacts
from ova.report.model_page import write_model_page
from ova.scores import SCORES
from ova.training.balance import said
from ova.training.classifier import Classifier
from ova.training.engine import Machine
from ova.training.features import once
from ova.training.loop import trained as trained_network
from ova.training.run_folder import (
    BALANCE,
    BEST,
    CHECKPOINT,
    LOCK,
    MANIFEST,
    MODEL,
    RECIPE,
    SCORED,
    predictions_path,
)
from ova.training.run_folder import read as read_run
from ova.training.stages import Event, Stage, stages
from ova.training.together import form_of
from ova.userdata.gather import Gathered

CARRIES = "calibration"  # the rows that carry the promise


@dataclass(frozen=True)
class Trained:
    """What a finished training says of its model."""

    evidence: Evidence  # the score that decides
    threshold: Threshold | Thresholds
    shown: (
        Threshold | Thresholds
    )  # the same on the scale of the calibrated confidences, where they decide
    calibration: Top | str  # or the reason why there is none
    outcomes: Mapping[str, str]  # what the threshold does on rows that it has not seen, by set
    by_class: PerClass
    balance: str = ""  # whether class weights helped, where they were tried


def train(
    fabric: Fabric,
    gathered: Gathered,
    out: Path,
    machine: Machine,
    wanted: Promise,
    score: str = "",
) -> Generator[Event, None, Trained]:
    """Train, or go on training, then choose the score that decides, and fit threshold and calibration.

    Writes the model and its report.
    """
    if score:
        pick(SCORES, score, "score")  # before any training
    run, task = out / names.RUN, gathered.task
    if gathered.recipe.samples:  # the promise would be about other answers than the model's
        raise BadInput(
            "samples is a setting of `ova run`: a model answers with dropout off. With --members 5 the "
            "mean over networks answers"
        )
    check(wanted, task)
    crossed.check(gathered, wanted, isinstance(wanted, EachClass))
    check_folder(out, task)
    weights = whole = adopt(out, run)
    if weights.exists() and machine.minutes:
        yield Stage("trained already, so the minutes change nothing; another --out trains anew")
    inputs, features = gathered, once(gathered.recipe)
    if features:  # from here on the network is what comes after the encoder
        weights, gathered = run / HEAD, (yield from on_features(gathered, fabric.device))
    else:  # a head is fitted to features in seconds, whatever the time
        inputs, machine = yield from planned(fabric, gathered, run, machine)
        gathered = inputs
    judges: Judges | None = None
    if gathered.folds is not None:  # every row is trained on, and judged by a head of its own
        judges = yield from crossed.judges(gathered, fabric)
        inputs, gathered = (crossed.with_strength(each, judges) for each in (inputs, gathered))
    recipe, task = gathered.recipe, gathered.task
    make = partial(crossed.to_train, judges, run) if judges else lambda: task
    net = yield from stages(fabric, recipe, run, machine, make, weights)
    rmtree(run / SCORED, ignore_errors=True)  # training rows stay only where the model needs them
    rmtree(run / BALANCE, ignore_errors=True)
    if not weights.exists():
        raise BadInput(f"{out}: the weights are gone; move the folder away to train again")
    yield Stage("score")
    rows = predictions_of(run, task)
    if net is None:  # the run was complete
        net = trained_network(task, recipe, weights).to(fabric.device)
    if features:
        join(net, inputs, whole)
    forward = forward_of(net, task.prepare)
    evidence, by_score = by_evidence(net, gathered, judges, rows, score)
    yield Stage("threshold")
    trained = conclude(rows, by_score, evidence, wanted, gathered)
    kept, seen = tried_on(trained, run, task, judges, by_score)
    trained = replace(trained, outcomes=seen, balance=said(run))
    model_folder.save(
        out,
        inputs,
        evidence,
        trained.threshold,
        trained.calibration,
        kept=kept,
        manifest=read_object(run / MANIFEST),
    )
    yield Stage("report")  # after the model, which no page may cost
    fitted = Fitted(trained.threshold, trained.shown, trained.calibration, evidence.name, task)
    found = inspect(inputs, read_run(run), forward, fitted, rows, by_score)
    write_model_page(facts_of(trained, rows, task.classes), found, out / names.REPORT)
    for name in (CHECKPOINT, BEST):  # the way there is of no more use
        (run / name).unlink(missing_ok=True)
    return trained


def by_evidence(
    net: Classifier,
    gathered: Gathered,
    judges: Judges | None,
    rows: Mapping[str, Predictions],
    score: str,
) -> tuple[Evidence, Mapping[str, Predictions]]:
    """The score that decides, and the predictions by it."""
    if judges is not None:
        return crossed.decided(net, judges, rows, score)
    forward = forward_of(net, gathered.task.prepare)
    evidence = decided(forward, head_of(net), gathered, rows, score)
    return evidence, judged(evidence, forward, gathered, rows)


def tried_on(
    trained: Trained,
    run: Path,
    task: Task,
    judges: Judges | None,
    by_score: Mapping[str, Predictions],
) -> tuple[Held, Mapping[str, str]]:
    """What is kept of the rows that carry the promise, and what threshold and sets do on others."""
    if judges is not None:
        return crossed.concluded(trained.outcomes, judges)
    kept = held(read(predictions_path(run, CARRIES)), by_score[CARRIES])
    return kept, {**trained.outcomes, **dict(sets_tried(kept, run, task))}


def conclude(
    rows: Mapping[str, Predictions],
    judged: Mapping[str, Predictions],
    evidence: Evidence,
    wanted: Promise,
    gathered: Gathered,
) -> Trained:
    """Fit threshold and calibration, and try them on rows that they have not seen.

    The threshold is of the score, which is the confidence of `judged`; the confidences of `rows`
    are what the model says.
    """
    threshold: Threshold | Thresholds
    if gathered.folds is not None:
        threshold = unpromised(judged[CARRIES], wanted)
    elif isinstance(wanted, EachClass):
        threshold = each_class.promised(judged[VALIDATION], judged[CARRIES], wanted)
    else:
        threshold = promised(judged, wanted, gathered.recipe.seed)
    return summed_up(rows, judged, evidence, threshold, gathered)


def summed_up(
    rows: Mapping[str, Predictions],
    judged: Mapping[str, Predictions],
    evidence: Evidence,
    threshold: Threshold | Thresholds,
    gathered: Gathered,
) -> Trained:
    """Fit the calibration, and try the threshold on rows that it has not seen."""
    recipe = gathered.recipe
    calibration = confidence.fit(rows[CARRIES])
    form = form_of(recipe)
    shown = confidence.shown(threshold, calibration, form, evidence.name)
    seen = dict(outcomes(judged, threshold, recipe.seed))
    parts = [judged[name] for name in (VALIDATION, CARRIES, TEST)]
    by_class = per_class(judged[TEST], parts, threshold, gathered.task.classes)
    return Trained(evidence, threshold, shown, calibration, seen, by_class)


def sets_tried(kept: Held, run: Path, task: Task) -> Iterator[tuple[str, str]]:
    """What the sets are on `test` and on the outside sets, where their probabilities were kept."""
    for name in task.evaluations:
        if not isinstance(kept.sets, str) and (name == TEST or SetName(name).outside):
            p = read(predictions_path(run, name))
            if p.probs is not None and len(p):
                yield f"{name}, sets", tried(kept.sets, p)


def facts_of(
    trained: Trained, rows: Mapping[str, Predictions], classes: Sequence[str]
) -> ModelFacts:
    """What the page says of the model."""
    calibration, ece = trained.calibration, METRICS["ece"]
    return ModelFacts(
        threshold=trained.threshold,
        score=trained.evidence.name,
        why=trained.evidence.why,
        calibrated=trained.shown.value if isinstance(calibration, Top) else None,
        names=classes,
        outcomes=[f"{name}: {outcome}" for name, outcome in trained.outcomes.items()],
        classes=[*rows_of(trained.by_class)],
        never=trained.by_class.never,
        calibration=confidence.to_json(calibration),
        ece=ece(rows[TEST]),
        calibrated_ece=ece(calibration.apply(rows[TEST])) if isinstance(calibration, Top) else None,
    )


def predictions_of(run: Path, task: Task) -> dict[str, Predictions]:
    """The predictions on all evaluation sets, without the matrices of probabilities."""
    sets = (VALIDATION, *task.evaluations)
    return {name: read(predictions_path(run, name), probs=False) for name in sets}


def adopt(out: Path, run: Path) -> Path:
    """Where the weights are or will be: in the model, not in its run; changed ones are refused."""
    weights = out / names.WEIGHTS
    if (run / MODEL).exists():  # version 0.1 left them there until the end
        (out / names.MODEL).unlink(missing_ok=True)
        (run / MODEL).replace(weights)
    if weights.exists():
        model_folder.check_weights(out)
    return weights


def check_folder(out: Path, task: Task) -> None:
    """Refuse a folder that holds something else, or a run on other data."""
    run = out / names.RUN
    if out.exists() and not (run / RECIPE).exists() and not just_begun(out):
        raise BadInput(f"{out} is not empty and not a model of ours; name another --out")
    if (run / MANIFEST).exists() and read_object(run / MANIFEST).get("data") != dict(task.sources):
        raise BadInput(
            f"{out} was trained on other data, or divided it otherwise (as earlier versions did, or as few rows "
            "without a promise are); "
            "name another --out"
        )


def just_begun(out: Path) -> bool:
    """Whether a folder holds no more than a training that was killed before it wrote its recipe."""
    held = [
        path for folder in (out, out / names.RUN) if folder.exists() for path in folder.iterdir()
    ]
    return {path.name for path in held} <= {names.RUN, LOCK, beside(out / names.RUN / RECIPE).name}
