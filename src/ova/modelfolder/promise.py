"""The threshold of a model and its promise: chosen on validation rows, fitted on calibration rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

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
COVERAGE = 0.95  # promised besides an accuracy that leaves room, and alone when none can be


def check(wanted: Promise, task: Task) -> None:
    """Refuse, before any training, what can never be promised."""
    check_promise(wanted, outside=())
    none = bool((task.evaluations["calibration"]().y == NONE).any())
    if wanted.leak is not None and not none and OUTSIDE not in task.evaluations:
        raise BadInput(
            "--leak limits how many inputs of none of the classes are answered, so it needs "
            "examples of them: --outside DATA, or rows with a label that --none names"
        )


def promised(
    rows: Mapping[str, Predictions], wanted: Promise, seed: int, first: float | None = None
) -> Threshold:
    """The threshold for the predictions of a finished run; `first` is what is tried if nobody asks.

    A leak rests on the calibration rows of no class and on one half of the outside examples.
    """
    held = rows["calibration"]
    outside = held.confidence[held.target == NONE]
    if wanted.leak is not None and OUTSIDE in rows:
        c = rows[OUTSIDE].confidence
        outside = np.concatenate([outside, c[half(len(c), seed)]])
    none = outside.astype(np.float64) if len(outside) else None
    return choose(rows[VALIDATION], held, wanted, none, first)


def half(n: int, seed: int) -> list[int]:
    """The rows on which a leak is promised; the others are reported on."""
    return sorted(np.random.default_rng([seed, n]).permutation(n)[: (n + 1) // 2].tolist())


def outcomes(
    rows: Mapping[str, Predictions], threshold: Threshold | Thresholds, seed: int
) -> Iterator[tuple[str, str]]:
    """What the threshold does on `test` and on the outside sets, on rows that it has not seen.

    The test rows are those of the classes and those of none: the promise is about both together.
    """
    for name, places in unseen(rows, threshold, seed).items():
        parts = [rows[name].take(places)]
        if name == TEST and STRANGE in rows:
            parts.append(rows[STRANGE])
        yield name, outcome(parts, threshold)


def unseen(
    rows: Mapping[str, Predictions], threshold: Threshold | Thresholds, seed: int
) -> dict[str, NDArray[np.int64]]:
    """The rows of `test` and of the outside sets on which the threshold does not rest; no empty set."""
    found = {n: np.arange(len(p)) for n, p in rows.items() if n == TEST or SetName(n).outside}
    if OUTSIDE in found and threshold.promise.leak is not None:
        every = found[OUTSIDE]
        found[OUTSIDE] = np.setdiff1d(every, half(len(every), seed))
    return {name: places for name, places in found.items() if name == TEST or len(places)}


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
    seen: Predictions,
    rows: Predictions,
    wanted: Promise,
    outside: Floats | None = None,
    first: float | None = None,
) -> Threshold:
    """The threshold that keeps what is wanted, fitted on `rows`, which nothing else has looked at.

    Without a request, which accuracy to promise first is decided on `seen`, the validation rows,
    unless `first` says it; if it cannot be had the lower ones are tried. A coverage is promised with
    it where there is room.
    Half of delta is for the first accuracy, a quarter for the lower ones together, a quarter for the
    coverage, so that what is told is false no more often than its certainty says. `outside`, the
    confidences of examples of no class, is for a leak; without a request for one they are only counted.
    """
    if wanted.says:
        asked = (wanted.accuracy, wanted.certainty)
        return fit_threshold(
            rows, *asked, coverage=wanted.coverage, leak=wanted.leak, outside=outside
        )
    delta = 1 - wanted.certainty
    best, (c, right) = first or target(seen, len(rows), 1 - delta / 2), scored(rows)
    high = coverage_value(np.sort(c)[::-1], COVERAGE, delta / 4)
    lower = [accuracy for accuracy in TARGETS if accuracy < best]
    levels = {best: delta / 2, **{accuracy: delta / 4 / len(lower) for accuracy in lower}}
    for accuracy, level in levels.items():
        values = accuracy_values(c, right, accuracy, level)
        if (value := refusing(values, c, high)) is not None:
            covered = COVERAGE if value <= high else None
            promise = replace(wanted, accuracy=accuracy, coverage=covered)
            return applied(value, promise, rows, outside)
    if high > -np.inf:
        return applied(high, replace(wanted, coverage=COVERAGE), rows, outside)
    return applied(lowest(c), wanted, rows, outside)


def unpromised(rows: Predictions, wanted: Promise) -> Threshold:
    """What refuses the lowest of the rows, without a promise: they are no held-out rows of the model."""
    return applied(lowest(scored(rows)[0]), wanted, rows, None)


def refusing(values: Floats, c: Floats, high: float) -> float | None:
    """Of certified values one that refuses something, and little of what is like the rows.

    One that answers everything would answer any nonsense too. All values that `accuracy_values`
    gives are certified at once, so any may be taken: the highest that keeps the coverage for certain,
    else the highest that keeps it on the rows, else the lowest.
    """
    some = values[np.isfinite(values)]
    answered = len(c) - np.searchsorted(np.sort(c), some, side="right")
    usual = some[answered >= COVERAGE * len(c)]
    for fitting in (some[some <= high], usual):
        if len(fitting):
            return float(fitting.max())
    return float(some.min()) if len(some) else None


def lowest(c: Floats) -> float:
    """The highest value that answers the stated share of the rows: what is refused if nothing is sure."""
    down = np.sort(c)[::-1]
    last = down[int(np.ceil(COVERAGE * len(c))) - 1]
    below = down[down < last]
    return float(below[0] if len(below) else np.nextafter(last, -np.inf))


def applied(value: float, promise: Promise, rows: Predictions, outside: Floats | None) -> Threshold:
    """A threshold with what is seen of it on the rows that its promise rests on."""
    above = rows.confidence > value
    return Threshold(
        value=value,
        promise=promise,
        n=len(rows),
        answered=float(above.mean()),
        accuracy=float(rows.correct[above].mean()) if above.any() else None,
        outside=0 if outside is None else len(outside),
        leak=None if outside is None else float((outside > value).mean()),
        none=int((rows.target == NONE).sum()),
    )


def target(seen: Predictions, n: int, certainty: float) -> float:
    """The highest accuracy that lets enough be answered.

    The rows are repeated until there are as many as the promise will rest on.
    """
    repeats = max(1, round(n / len(seen)))
    many = seen.take(np.repeat(np.arange(len(seen)), repeats))
    answered = [fit_threshold(many, accuracy, certainty).answered for accuracy in TARGETS]
    enough = [k for k, share in enumerate(answered) if share >= WORTH]
    return TARGETS[enough[0] if enough else int(np.argmax(answered))]
