"""The threshold of a model and its promise: chosen on validation rows, fitted on calibration rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ova.data.task import Task
from ova.errors import BadInput
from ova.posthoc.certificates import Floats, accuracy_values, coverage_value
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Promise, Threshold, check_promise, fit_threshold, scored
from ova.predictions import NONE, Predictions, SetName
from ova.predictions.sets import TEST, VALIDATION
from ova.userdata.gather import OUTSIDE, STRANGE

TARGETS = (0.99, 0.98, 0.95, 0.9, 0.8)  # accuracies that are tried when the user asks for none
WORTH = 0.5  # share of the inputs that should be answered
COVERAGE = 0.95  # promised besides an accuracy that is easy, and alone when none can be


def check(wanted: Promise, task: Task) -> None:
    """Refuse, before any training, what can never be promised."""
    check_promise(wanted, outside=())
    none = bool((task.evaluations["calibration"]().y == NONE).any())
    if wanted.leak is not None and not none and OUTSIDE not in task.evaluations:
        raise BadInput(
            "--leak limits how many inputs of none of the classes are answered, so it needs "
            "examples of them: --outside DATA, or rows with a label that --none names"
        )


def promised(rows: Mapping[str, Predictions], wanted: Promise, seed: int) -> Threshold:
    """The threshold for the predictions of a finished run.

    A leak rests on the calibration rows of no class and on one half of the outside examples.
    """
    held = rows["calibration"]
    outside = held.confidence[held.target == NONE]
    if wanted.leak is not None and OUTSIDE in rows:
        c = rows[OUTSIDE].confidence
        outside = np.concatenate([outside, c[half(len(c), seed)]])
    none = outside.astype(np.float64) if len(outside) else None
    return choose(rows[VALIDATION], held, wanted, none)


def half(n: int, seed: int) -> list[int]:
    """The rows on which a leak is promised; the others are reported on."""
    return sorted(np.random.default_rng([seed, n]).permutation(n)[: (n + 1) // 2].tolist())


def outcomes(
    rows: Mapping[str, Predictions], threshold: Threshold | Thresholds, seed: int
) -> Iterator[tuple[str, str]]:
    """What the threshold does on `test` and on the outside sets, on rows that it has not seen.

    The test rows are those of the classes and those of none: the promise is about both together.
    """
    for name, p in rows.items():
        if name == TEST:
            yield name, outcome([p, rows[STRANGE]] if STRANGE in rows else [p], threshold)
        elif name == OUTSIDE and threshold.promise.leak is not None:
            unseen = p.take(np.setdiff1d(np.arange(len(p)), half(len(p), seed)))
            if len(unseen):
                yield name, outcome([unseen], threshold)
        elif SetName(name).outside:
            yield name, outcome([p], threshold)


def outcome(parts: Sequence[Predictions], threshold: Threshold | Thresholds) -> str:
    """How many are answered, and how many of those rightly where there is a right answer."""
    c, k = (np.concatenate([getattr(p, n) for p in parts]) for n in ("confidence", "prediction"))
    kept = threshold.answers(c, k)
    words = f"{kept.mean():.1%} of {len(kept)} answered"
    if kept.any() and any((p.target != NONE).any() for p in parts):
        right = np.concatenate([p.correct for p in parts])
        words += f", {right[kept].mean():.1%} of them right"
    return words.replace("%", " %")


def choose(
    seen: Predictions, rows: Predictions, wanted: Promise, outside: Floats | None = None
) -> Threshold:
    """The threshold that keeps what is wanted, fitted on `rows`, which nothing else has looked at.

    Without a request, which accuracy to promise is decided on `seen`, the validation rows, and a
    coverage is promised with it where the accuracy leaves room for that. Where the accuracy cannot
    be had, that most inputs are answered is promised instead, and nothing about the answers.
    Whether one of the two is told or both, each was tried with half of delta, so that what is told
    is false no more often than its certainty says. `outside`, the confidences of examples of no class, is
    for a leak; without a request for one they are only counted.
    """
    fit = partial(fit_threshold, rows, outside=outside)
    if wanted.says:
        return fit(wanted.accuracy, wanted.certainty, coverage=wanted.coverage, leak=wanted.leak)
    half_of_delta = (1 + wanted.certainty) / 2
    accuracy, easy = target(seen, len(rows), half_of_delta)
    if easy:  # two promises: each has half
        found = fit(accuracy, wanted.certainty, coverage=COVERAGE)
        if found.promised:
            return strictest(found, rows, outside)
    found = fit(accuracy, half_of_delta)
    if not found.promised:
        found = fit(coverage=COVERAGE, certainty=half_of_delta)
    return replace(found, promise=replace(found.promise, certainty=wanted.certainty))


def strictest(found: Threshold, rows: Predictions, outside: Floats | None) -> Threshold:
    """The highest threshold that keeps the promise of an accuracy and a coverage.

    An easy task would be promised with every input answered, also those from outside. All values
    that `accuracy_values` gives are certified at once, so the highest may be taken.
    """
    promise, (c, right) = found.promise, scored(rows)
    assert promise.accuracy is not None
    assert promise.coverage is not None
    delta = (1 - promise.certainty) / 2  # as for two promises that hold together
    values = accuracy_values(c, right, promise.accuracy, delta)
    value = values[values <= coverage_value(np.sort(c)[::-1], promise.coverage, delta)].max()
    above = c > value
    return replace(
        found,
        value=float(value),
        answered=float(above.mean()),
        accuracy=float(right[above].mean()),
        leak=None if outside is None else float((outside > value).mean()),
    )


def target(seen: Predictions, n: int, certainty: float) -> tuple[float, bool]:
    """The highest accuracy that lets enough be answered, and whether that is nearly everything.

    The rows are repeated until there are as many as the promise will rest on.
    """
    repeats = max(1, round(n / len(seen)))
    many = seen.take([row for row in range(len(seen)) for _ in range(repeats)])
    found = [fit_threshold(many, accuracy, certainty) for accuracy in TARGETS]
    enough = [k for k, threshold in enumerate(found) if threshold.answered >= WORTH]
    best = enough[0] if enough else max(range(len(found)), key=lambda k: found[k].answered)
    return TARGETS[best], found[best].answered >= COVERAGE
