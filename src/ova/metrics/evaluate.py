"""Every metric and curve of every set of predictions: what `ova evaluate` and a run write down."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from ova.errors import BadInput
from ova.files import Row
from ova.metrics import DETECTION, METRICS, Draws, Interval
from ova.metrics.calibration import BINS, Reliability, reliability
from ova.metrics.halves import Halved, auroc_of_sets, mean, of_set
from ova.metrics.ranking import Detection, Ranking, precision_recall, rank, roc
from ova.metrics.resampling import bootstrap_all, bootstrap_ranking
from ova.metrics.selective import (
    MIXED,
    accuracy_confidence,
    certainty,
    histogram,
    mixture,
    risk_coverage,
)
from ova.metrics.shift import Table, boxes, mean_over_shift
from ova.metrics.thresholds200 import aupr_200, auroc_200
from ova.predictions import Predictions, SetName
from ova.predictions.checks import check_classes
from ova.predictions.columns import Array
from ova.predictions.sets import TEST
from ova.scores import scores_of

Sets = Mapping[str, Predictions | Callable[[], Predictions]]
Key = tuple[str, str, str]  # of a value: data set, metric, and the score if there is one
POINTS = 500  # of a curve in the report; the numbers are read off all of them
FEW = 60  # of a curve by any score but the confidence: there are many
DIGITS = 6
CALIBRATED = tuple(name for name, metric in METRICS.items() if metric.calibrated)


class Calibration(Protocol):
    """A calibration that was fitted on other predictions of the same model."""

    @property
    def method(self) -> str:
        """Its name."""

    def apply(self, p: Predictions) -> Predictions:
        """The same answers with calibrated confidences."""
        ...


def evaluate(
    sets: Sets,
    draws: Draws | None = None,
    calibration: Calibration | None = None,
    *,
    halves: Sequence[str] = (),
) -> tuple[list[Row], list[Row]]:
    """Measurements and curves of sets named `test`, `shift/<type>/<severity>`, `ood/<name>`, ...

    A set may be a function that makes it; then `test` and one other are in memory at a time. With
    `draws` each measurement that can have one has an interval `low`, `high`. With a calibration,
    `test` and the shifted sets have rows after it too, with its method under the key `calibration`.
    With `halves` what verdicts are about has its values on random halves of the examples, and so
    has AUROC by the scores that it names.

    >>> said = Predictions.from_probs([[0.9, 0.1], [0.4, 0.6]], [0, 0], normalised=True)
    >>> rows, curves = evaluate({"test": said})
    >>> rows[0]
    {'dataset': 'test', 'metric': 'accuracy', 'value': 0.5, 'n': 2}
    """
    names = sorted(map(SetName, sets), key=lambda name: name.place)
    if any(name.outside for name in names) and "test" not in sets:
        raise BadInput("OOD sets are compared with the set `test`, which is missing")
    rows: list[Row] = []
    after: list[Row] = []
    curves: list[Row] = []
    pooled: dict[int, Reliability] = {}
    halved: dict[Key, Halved] = {}
    test = _made(sets, TEST) if "test" in sets else None
    for name in names:
        p = test if name == "test" and test is not None else _made(sets, name)
        if test is not None:
            check_classes(p, name, test, TEST)
        rows += measurements(name, p, draws)
        if halves:
            halved |= halves_of(name, p, test, halves)
        if calibration is not None and name.calibrated:
            after += calibrated(name, calibration.apply(p))
        if name.outside and test is not None:
            rows += detections(name, test, p, draws)
            curves += outside_curves(name, test, p)
        elif name.shifted:
            curve, severity = reliability(p), name.severity
            pooled[severity] = pooled[severity] + curve if severity in pooled else curve
        else:
            curves += inside_curves(name, p)
        del p  # before the next is made
    curves += [_reliability(SetName.shift("*", s), c) for s, c in sorted(pooled.items())]
    rows += aggregates(rows)
    rows = with_halves(rows, halved)
    if calibration is not None:
        rows += [r | {"calibration": calibration.method} for r in after + aggregates(after)]
    return rows, curves


def measurements(name: SetName, p: Predictions, draws: Draws | None = None) -> list[Row]:
    """One row per metric; for sets outside the classes only those that mean something there."""
    wanted = {m: e for m, e in METRICS.items() if e.outside or not name.outside}
    if draws is None:
        found: dict[str, Row] = {metric: {"value": entry(p)} for metric, entry in wanted.items()}
    else:
        intervals = bootstrap_all(wanted, p, draws=draws)
        found = {metric: _interval(interval, draws) for metric, interval in intervals.items()}
    return [_row(name, m, len(p), wanted[m].parameters, values) for m, values in found.items()]


def calibrated(name: str, p: Predictions) -> list[Row]:
    """What of a set's measurements a calibration changes, of calibrated predictions."""
    entries = ((metric, METRICS[metric]) for metric in CALIBRATED)
    return [_row(name, m, len(p), entry.parameters, {"value": entry(p)}) for m, entry in entries]


def detections(
    name: str, inside: Predictions, outside: Predictions, draws: Draws | None = None
) -> list[Row]:
    """Every detection metric for every score that both sets have, and AUC on 200 thresholds."""
    n = len(inside) + len(outside)
    rows = [
        row
        for score, (a, b) in _both(inside, outside).items()
        for row in by_score(SetName(name), score, (a, b, inside.correct), draws)
    ]
    for metric, measure in {"auroc_200": auroc_200, "aupr_outside_200": aupr_200}.items():
        value = {"value": measure(inside.confidence, outside.confidence)}
        rows.append(_row(name, metric, n, {"score": "max_p", "thresholds": 200}, value))
    return rows


def by_score(
    name: SetName, score: str, values: tuple[Array, Array, Array | None], draws: Draws | None
) -> Iterator[Row]:
    """What one score does: tells inside from outside, and ranks right answers above all others.

    `values` are the score inside and outside and where the answers inside are right, if that is known.
    """
    a, b, right = values
    sizes = (len(a), len(b))
    yield from read_off(name, score, DETECTION, (lambda i, j: rank(a[i], b[j]), sizes), draws)
    if right is not None:
        mixed = (lambda i, j: mixture(a[i], right[i], b[j]), sizes)
        yield from read_off(name.with_test, score, MIXED, mixed, draws)


def read_off(
    dataset: str,
    score: str,
    table: Mapping[str, Detection],
    ranked: tuple[Callable[[Array, Array], Ranking], tuple[int, int]],
    draws: Draws | None,
) -> Iterator[Row]:
    """A row for every entry of the table, from a function that ranks rows of two sets, and their sizes."""
    make, sizes = ranked
    if draws is None:
        r = make(*map(np.arange, sizes))
        found: dict[str, Row] = {metric: {"value": entry(r)} for metric, entry in table.items()}
    else:
        intervals = bootstrap_ranking(table, make, sizes, draws)
        found = {metric: _interval(interval, draws) for metric, interval in intervals.items()}
    for metric, known in found.items():
        yield _row(dataset, metric, sum(sizes), {"score": score, **table[metric].parameters}, known)


def aggregates(rows: list[Row]) -> list[Row]:
    """Per metric a box over types for each severity, then the mean of the means."""
    found = []
    for metric, entry in METRICS.items():
        mine = [r for r in rows if r["metric"] == metric and SetName(r["dataset"]).shifted]
        at = [SetName(r["dataset"]) for r in mine]
        table: Table = {
            (s.type, s.severity): r["value"]
            for s, r in zip(at, mine, strict=True)
            if r["value"] is not None
        }
        if not table or len(table) < len(mine):
            continue  # a mean over what happens to be defined would compare unlike things
        for severity, box in boxes(table).items():
            n = sum(r["n"] for s, r in zip(at, mine, strict=True) if s.severity == severity)
            spread = asdict(box)
            value = {"value": spread.pop("mean")}
            found.append(
                _row(SetName.shift("*", severity), metric, n, entry.parameters, value) | spread
            )
        means = {"value": mean_over_shift(table)}
        total = sum(r["n"] for r in mine)
        found.append(_row("shift", metric, total, entry.parameters, means))
    return found


def halves_of(
    name: SetName, p: Predictions, test: Predictions | None, scores: Sequence[str]
) -> dict[Key, Halved]:
    """What verdicts are about: accuracy and ECE of the test set, ECE under shift, AUROC by scores."""
    if name.outside and test is not None:
        both = _both(test, p)
        known = {
            s: auroc_of_sets((TEST, both[s][0]), (name, both[s][1])) for s in scores if s in both
        }
        return {(name, "auroc", s): halved for s, halved in known.items() if halved is not None}
    metrics = ("accuracy", "ece") if name == TEST else ("ece",) if name.shifted else ()
    return {(name, metric, ""): h for metric, h in of_set(name, p, metrics).items()}


def with_halves(rows: list[Row], halved: dict[Key, Halved]) -> list[Row]:
    """The rows, those of test and outside sets and of the strongest shift with their halves."""
    shifted = {
        SetName(dataset): h for (dataset, *_), h in halved.items() if SetName(dataset).shifted
    }
    kept = {key: h for key, h in halved.items() if key[0] not in shifted}
    if shifted:
        top = max(name.severity for name in shifted)
        strongest = mean(h for name, h in shifted.items() if name.severity == top)
        kept[SetName.shift("*", top), "ece", ""] = strongest
    places = ((row["dataset"], row["metric"], row.get("score", "")) for row in rows)
    return [row | _halves(kept.get(place)) for row, place in zip(rows, places, strict=True)]


def _halves(found: Halved | None) -> Row:
    if found is None:
        return {}
    values = {"halves": [_rounded(x) for x in found.values.tolist()]}
    return values | ({"excess": _rounded(found.excess)} if found.excess else {})


def inside_curves(name: str, p: Predictions) -> Iterator[Row]:
    """Reliability, accuracy against confidence and risk against coverage of one set."""
    yield _reliability(name, reliability(p))
    yield _accuracy_confidence(name, p, None)
    if name == "test":
        yield _risk_coverage(name, certainty(p))


def outside_curves(name: SetName, test: Predictions, p: Predictions) -> Iterator[Row]:
    """What mixing in a set of none of the classes does, and how well it is told apart."""
    mixed = name.with_test
    yield _accuracy_confidence(mixed, test, p)
    yield _risk_coverage(mixed, certainty(test, p))
    yield _curve(mixed, "histogram", vars(histogram(test, p)))
    for score, (a, b) in _both(test, p).items():
        r = rank(a, b)
        points = POINTS if score == "max_p" else FEW
        fpr, tpr = _thinned(*roc(r), points)
        yield _curve(name, "roc", {"fpr": fpr, "tpr": tpr}, score=score)
        recall, precision = _thinned(*precision_recall(r), points)
        columns = {"recall": recall, "precision": precision}
        yield _curve(name, "precision_recall", columns, score=score, positive="inside")


def _both(inside: Predictions, outside: Predictions) -> dict[str, tuple[Array, Array]]:
    """Every score that both sets have."""
    mine, theirs = scores_of(inside), scores_of(outside)
    return {name: (values, theirs[name]) for name, values in mine.items() if name in theirs}


def _made(sets: Sets, name: SetName) -> Predictions:
    if name.kind == "shift" and not name.shifted:
        raise BadInput(f"a shifted set is called shift/<type>/<severity>, not {str(name)!r}")
    made = sets[name]
    p = made if isinstance(made, Predictions) else made()
    if not len(p):
        raise BadInput(f"the set {name} is empty: there is nothing to measure")
    strange = p.target < 0
    if not name.outside and strange.any():
        row = int(p.id[strange.argmax()])
        raise BadInput(f"{name}, row {row}: target -1 (none of the classes) belongs in an OOD set")
    if name.outside and not strange.all():
        row = int(p.id[strange.argmin()])
        raise BadInput(
            f"{name}, row {row}: an OOD example has target -1, not {p.target[p.id == row][0]}"
        )
    return p


def _interval(interval: Interval | None, draws: Draws) -> Row:
    if interval is None or interval.low is None:
        return {"value": None if interval is None else interval.value}
    return asdict(interval) | {"draws": draws.count}


def _row(dataset: str, metric: str, n: int, parameters: Mapping[str, Any], found: Row) -> Row:
    row: Row = {"dataset": dataset, "metric": metric, "value": found["value"], "n": n}
    row |= {k: v for k, v in found.items() if k != "value"} | dict(parameters)
    for key in ("value", "low", "high"):
        if row.get(key) is not None and not math.isfinite(row[key]):
            row |= {key: None, "why": "infinite: a target has probability 0"}
    return row


def _curve(dataset: str, name: str, columns: Mapping[str, Array], **parameters: Any) -> Row:
    lists = {k: [_rounded(x) for x in np.asarray(v).tolist()] for k, v in columns.items()}
    return {"dataset": dataset, "curve": name, "columns": lists} | parameters


def _rounded(x: float) -> float | None:
    if isinstance(x, int):
        return x
    return float(f"{x:.{DIGITS}g}") if math.isfinite(x) else None


def _reliability(name: str, c: Reliability) -> Row:
    columns = {k: getattr(c, k) for k in ("lower", "upper", "count", "confidence", "accuracy")}
    return _curve(name, "reliability", columns, bins=BINS, rule="equal-width")


def _accuracy_confidence(name: str, inside: Predictions, outside: Predictions | None) -> Row:
    c = accuracy_confidence(inside, outside)
    columns = {k: getattr(c, k) for k in ("threshold", "kept", "accuracy", "answered")}
    return _curve(name, "accuracy_confidence", columns)


def _risk_coverage(name: str, r: Ranking) -> Row:
    coverage, risk = _thinned(*risk_coverage(r))
    return _curve(name, "risk_coverage", {"coverage": coverage, "risk": risk})


def _thinned(x: Array, y: Array, points: int = POINTS) -> tuple[Array, Array]:
    """At most so many of the points, evenly along the path, with both ends."""
    if len(x) <= points:
        return x, y
    path = np.concatenate([[0], np.cumsum(np.abs(np.diff(x)) + np.abs(np.diff(y)))])
    at = np.searchsorted(path, np.linspace(0, path[-1], points))
    at = np.unique(np.clip(np.append(at, [0, len(x) - 1]), 0, len(x) - 1))
    return x[at], y[at]
