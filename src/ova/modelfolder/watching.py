"""A model folder's promise and inputs watched by the log of its answers."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.files import read_object
from ova.modelfolder import each_class
from ova.modelfolder.arrivals import Arrivals
from ova.modelfolder.caveats import unlike, warnings
from ova.modelfolder.folder import digest, facts_of
from ova.modelfolder.held import Answered, Held
from ova.modelfolder.log import UNLABELLED, Labels, Log, read_log, rounded
from ova.modelfolder.names import HELD
from ova.posthoc.certificates import Counts, Truths
from ova.posthoc.monitoring import Monitor
from ova.posthoc.monitoring.interval import bounds
from ova.posthoc.monitoring.monitor import INPUTS, PROMISE, Finding
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import NONE

ACCURACY, COVERAGE, LEAK, POOLED = "accuracy", "coverage", "leak", "accuracy of the rare classes"
CHANGED, BROKEN, BOTH = 3, 4, 5  # exit codes: the inputs, a promise, both; 2 is bad input
CERTAINTY = 0.95  # of the bounds of the accuracy
NO_SCORES = (
    "an earlier version of ova trained the model and kept no scores to compare with; the same "
    "`ova train` command writes them, without new training"
)
POINTS = 300  # of the bounds over time


@dataclass(frozen=True, eq=False)
class Watched:
    """What is needed of a model: its classes, its threshold and the rows that carry its promise."""

    classes: tuple[str, ...]
    threshold: Threshold | Thresholds
    answered: Answered
    digest: str  # of model.json


@dataclass(frozen=True, eq=False)
class Watch:
    """A log compared with a model."""

    model: Watched
    log: Log
    monitor: Monitor
    false_alarms: float
    warnings: tuple[str, ...]
    right: Truths  # of the labelled answers, in the order in which their labels came
    right_rows: Counts

    @property
    def alarms(self) -> list[Finding]:
        """Those that were ever raised, the first one first."""
        return sorted(self.monitor.alarms, key=lambda found: found.alarm or 0)

    @property
    def exit_code(self) -> int:
        """What the command ends with."""
        about = {found.about for found in self.alarms}
        if about == {INPUTS, PROMISE}:
            return BOTH
        return CHANGED if INPUTS in about else BROKEN if about else 0

    @property
    def refused(self) -> tuple[float, float]:
        """The share of the log that was refused, and of the rows that carry the promise."""
        kept = self.model.threshold.answers(self.model.answered.scores, self.model.answered.classes)
        return float((self.log.answer == NONE).mean()), 1 - float(kept.mean())

    def at(self, row: int) -> str:
        """A row by its number, from 1 on, and its time where the log says it."""
        when = self.log.when[row]
        return f"row {row + 1}" + (f" ({when})" if when else "")

    def lines(self) -> Iterator[str]:
        """What was found, in words."""
        n, labelled = len(self.log), int((self.log.target != UNLABELLED).sum())
        now, before = self.refused
        seen = f"{n} rows, {now:.1%} refused ({before:.1%} of those that carry the promise)"
        yield f"{seen}, {labelled} labels".replace("%", " %")
        for found in self.alarms:
            assert found.alarm is not None
            assert found.since is not None
            what = "no longer kept" if found.about == PROMISE else "changed"
            since = f"since about {self.at(found.since)}, sure after {self.at(found.alarm)}"
            yield f"ALARM {found.about}: {found.name} {what} {since}"
        if not self.alarms:
            yield "no alarm"
        yield f"the chance that there is ever a false alarm is {self.false_alarms:g} at most"
        if last := self.bounds(1):
            its, low, high = (f"{last[0][name]:.1%}" for name in ("seen", "low", "high"))
            share = self.model.threshold.promise.accuracy
            wanted = "" if share is None else f", promised {share:.1%}"
            said = (
                f"{its} of {len(self.right)} labelled answers are right: between {low} and {high}"
            )
            yield f"{said} with certainty {CERTAINTY:g}{wanted}".replace("%", " %")

    def bounds(self, points: int = POINTS) -> list[dict[str, float]]:
        """The accuracy of the labelled answers so far and its bounds, after ever more of them."""
        n = len(self.right)
        at = (
            np.unique(np.linspace(n, 1, min(n, points)).astype(np.int64)) if n else np.zeros(0, int)
        )
        low, high = bounds(self.right, at, CERTAINTY) if n else (at, at)
        seen = np.cumsum(self.right)[at - 1] / np.maximum(at, 1)
        columns = {"labels": at, "seen": seen, "low": low, "high": high}
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]

    def to_json(self) -> dict[str, Any]:
        """Plain values for machines."""
        last = self.bounds(1)
        promise = self.model.threshold.promise
        return {
            "rows": len(self.log),
            "skipped": self.log.skipped,
            "refused": int((self.log.answer == NONE).sum()),
            "labelled": int((self.log.target != UNLABELLED).sum()),
            "labelled_answers": len(self.right),
            "false_alarms": self.false_alarms,
            "exit_code": self.exit_code,
            "alarms": [self.told(found) for found in self.alarms],
            "watched": [self.told(found) for found in self.monitor.findings],
            "promise": asdict(promise) if self.model.threshold.promised else None,
            "accuracy": {**last[0], "certainty": CERTAINTY} if last else None,
            "warnings": list(self.warnings),
        }

    def told(self, found: Finding) -> dict[str, Any]:
        """A finding with the times of its rows, where the log has times."""
        rows = {"alarm_time": found.alarm, "since_time": found.since}
        when = {name: None if row is None else self.log.when[row] for name, row in rows.items()}
        return {**asdict(found), **when}


def model_of(folder: Path) -> Watched:
    """What the folder keeps, without its network."""
    facts = facts_of(folder)
    classes = tuple(map(str, facts["classes"]))
    held = None
    if HELD in facts["parts"]:
        kept = Held.from_json(read_object(folder / HELD), len(classes))
        if kept.answered is None and not len(kept.scores):
            raise BadInput(
                f"{folder}: no row was held out when the model was trained, so there is nothing to compare "
                "with; `ova promise MODEL ROWS` keeps the scores of rows that took no part"
            )
        held = kept.answered
    if held is None:
        raise BadInput(f"{folder}: {NO_SCORES}")
    threshold = each_class.from_json(facts["threshold"], len(classes))
    return Watched(classes, threshold, held, digest(facts))


def watch(
    folder: Path,
    paths: Sequence[Path],
    labels: Labels = Labels(),  # noqa: B008  frozen
    *,
    false_alarms: float = 0.01,
    state: Path | None = None,
) -> Watch:
    """Read a log and bet on it. `state` remembers in which order labels came; it is written here."""
    model = model_of(folder)
    log = read_log(paths, model.classes, labels, model.digest)
    if log.others and not len(log):
        raise BadInput(
            f"{paths[0]}: its {log.others} rows are answers of another model; name the model that gave them"
        )
    if not len(log):
        raise BadInput(f"{paths[0]}: there is no row with a score in it yet")
    arrivals = Arrivals.of(state, log, (model.digest, false_alarms))
    differing = unlike(log, model.threshold)
    monitor = monitor_of(model, log.guess is not None, not differing, false_alarms)
    monitor.update(log.score, log.guess)
    rows = arrivals.rows
    for name in monitor.promised:
        monitor.outcomes(name, *outcomes(name, log, rows, model))
    good, its = outcomes(ACCURACY, log, rows, model)
    found = Watch(
        model,
        log,
        monitor,
        false_alarms,
        (*warnings(log, model.threshold.promised, differing),),
        good,
        its,
    )
    if state is not None:
        arrivals.write(state)
    return found


def monitor_of(model: Watched, guesses: bool, promises: bool, false_alarms: float) -> Monitor:
    """What watches a stream of the model's answers, with its best guesses and promises or without."""
    return Monitor(
        rounded(model.answered.scores),
        model.answered.classes if guesses else None,
        names=model.classes,
        promised=dict(promised(model.threshold, model.classes)) if promises else {},
        false_alarms=false_alarms,
    )


def promised(
    threshold: Threshold | Thresholds, names: Sequence[str]
) -> Iterator[tuple[str, float]]:
    """The shares that are promised, by what they are of; a leak as the share that is refused."""
    promise = threshold.promise
    if not threshold.promised:
        return
    if isinstance(threshold, Thresholds):
        assert promise.accuracy is not None
        for k, part in threshold.parts.items():
            if part.promised and k not in threshold.pooled:
                yield of_class(names[k]), promise.accuracy
        if any(threshold.parts[k].promised for k in threshold.pooled):
            yield POOLED, promise.accuracy
        return
    if promise.accuracy is not None:
        yield ACCURACY, promise.accuracy
    if promise.coverage is not None:
        yield COVERAGE, promise.coverage
    if promise.leak is not None:
        yield LEAK, 1 - promise.leak


def of_class(name: str) -> str:
    """What the accuracy of the answers of a class is called."""
    return f"accuracy of {name!r}"


def outcomes(name: str, log: Log, arrived: Counts, model: Watched) -> tuple[Truths, Counts]:
    """Whether each row that a promise is about did what was promised, and these rows.

    A coverage is known at once; all others once there is a label, in the order in which labels came.
    Rows that another threshold decided are none of them.
    """
    if name == COVERAGE:
        return (log.answer != NONE)[log.own], np.flatnonzero(log.own)
    arrived = arrived[log.own[arrived]]
    answer, target = log.answer[arrived], log.target[arrived]
    if name == LEAK:
        about, good = target == NONE, answer == NONE
    else:
        about, good = answer != NONE, answer == target
        if name == POOLED:
            assert isinstance(model.threshold, Thresholds)
            about &= np.isin(answer, model.threshold.pooled)
        elif name != ACCURACY:
            about &= answer == [of_class(c) for c in model.classes].index(name)
    return good[about], arrived[about]
