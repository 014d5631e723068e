"""From runs to plain rows: one value or one point of a curve per row, with its label and seed."""

from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

from ova.files import Row
from ova.metrics.choice import PLAIN
from ova.predictions.sets import SetName
from ova.report.runs import where
from ova.training.run_folder import Run

# Of several variants of a metric or a curve, the one the paper means.
VARIANT: dict[str, Row] = {"ece": {"bins": 15, "rule": "equal-width"}}
RAW = ("none", "raw", None)  # what a row without calibration after training says


def measured(
    run: Run, metric: str, *, calibrated: bool = False, score: str = PLAIN, **wanted: Any
) -> Iterator[Row]:
    """The run's rows of a metric in the paper's variant, before or after calibration, with a value.

    Where the metric is of a score, of that one.
    """
    variant = {**VARIANT.get(metric, {}), "score": score}
    for row in run.measurements:
        if (
            row["metric"] == metric
            and row["value"] is not None
            and (row.get("calibration") not in RAW) == calibrated
            and where(row, **variant)
            and all(row.get(key) == value for key, value in wanted.items())
        ):
            yield row


def values(runs: Sequence[Run], metric: str, dataset: str, score: str = PLAIN) -> list[Row]:
    """One value of the metric on a data set per run, with what the row says of its spread."""
    return [
        {"label": run.label, "seed": run.seed, "value": row["value"]} | interval(row) | halves(row)
        for run in runs
        for row in list(measured(run, metric, dataset=dataset, score=score))[:1]
    ]


def interval(row: Row) -> Row:
    """The bootstrap interval of a row, where it has one."""
    if row.get("low") is None or row.get("high") is None:
        return {}
    return {"low": row["low"], "high": row["high"]}


def halves(row: Row) -> Row:
    """The values on halves of the test examples, where a row has them."""
    if "halves" not in row:
        return {}
    return {key: value for key, value in row.items() if key in ("halves", "excess", "n")}


def outside(runs: Sequence[Run]) -> list[SetName]:
    """The measured sets of none of the classes, in order of appearance."""
    names = (SetName(row["dataset"]) for run in runs for row in run.measurements)
    return list(dict.fromkeys(name for name in names if name.outside))


def shifts(runs: Sequence[Run], metric: str, *, calibrated: bool = False) -> list[Row]:
    """The metric for each type and severity; the plain test set is severity 0."""
    found: list[Row] = []
    for run in runs:
        for row in measured(run, metric, calibrated=calibrated):
            name = SetName(row["dataset"])
            if name.calibrated:
                place = {"type": name.type or "test", "severity": name.severity}
                head = {"label": run.label, "seed": run.seed, "metric": metric}
                found.append(head | place | {"value": row["value"]})
    return found if any(row["severity"] > 0 for row in found) else []


def over_types(shifted: Sequence[Row], metric: str) -> list[Row]:
    """The mean over the types of shift per run and severity, under the name of a metric."""
    groups: dict[tuple[str, int, int], list[float]] = {}
    for row in shifted:
        groups.setdefault((row["label"], row["seed"], row["severity"]), []).append(row["value"])
    names = ("label", "seed", "severity")
    return [
        dict(zip(names, key, strict=True)) | {"metric": metric, "value": sum(v) / len(v)}
        for key, v in groups.items()
    ]


def strongest(runs: Sequence[Run], metric: str) -> list[Row]:
    """Per run, the mean of the metric over all types at the largest severity."""
    found = over_types(shifts(runs, metric), metric)
    top = max((row["severity"] for row in found), default=0)
    means = values(runs, metric, SetName.shift("*", top))
    known = {(row["label"], row["seed"]): halves(row) for row in means}
    strong = (row for row in found if row["severity"] == top)
    return [row | known.get((row["label"], row["seed"]), {}) for row in strong]


def over_ood(runs: Sequence[Run], metric: str) -> list[Row]:
    """Per run, the mean of the metric over all OOD sets."""
    return over(runs, metric, lambda name: name.outside)


def over(
    runs: Sequence[Run], metric: str, meant: Callable[[SetName], bool], score: str = PLAIN
) -> list[Row]:
    """Per run, the mean of the metric by a score over the sets that are meant."""
    found: list[Row] = []
    for run in runs:
        rows = measured(run, metric, score=score)
        each = {r["dataset"]: r for r in rows if meant(SetName(r["dataset"]))}
        if each:
            value = sum(row["value"] for row in each.values()) / len(each)
            known = interval(next(iter(each.values()))) if len(each) == 1 else {}
            head = {"label": run.label, "seed": run.seed, "value": value}
            found.append(head | known | mean_halves([halves(row) for row in each.values()]))
    return found


def mean_halves(rows: Sequence[Row]) -> Row:
    """The halves of the mean over several sets, if all have them."""
    if not all(rows):
        return {}
    means = [fmean(each) for each in zip(*(row["halves"] for row in rows), strict=True)]
    return {"halves": means, "n": sum(row["n"] for row in rows)}


def curves(run: Run, name: str, every: bool = False) -> Iterator[Row]:
    """The run's curves of a name, before any calibration, by confidence or by every score."""
    for curve in run.curves:
        raw = curve.get("calibration") in RAW
        if curve["curve"] == name and raw and (every or where(curve, score=PLAIN)):
            yield curve


def points(runs: Sequence[Run], name: str) -> list[Row]:
    """The points of the curves of a name."""
    found: list[Row] = []
    for run in runs:
        for curve in curves(run, name):
            head = {"label": run.label, "seed": run.seed, "dataset": curve["dataset"]}
            found.extend(head | point for point in unfold(curve["columns"]))
    return found


def first_curves(runs: Sequence[Run], name: str) -> list[tuple[Run, dict[str, list[Any]]]]:
    """The first run of each label that has a curve of a name, and the curve's columns."""
    found: dict[str, tuple[Run, dict[str, list[Any]]]] = {}
    for run in runs:
        for curve in curves(run, name):
            found.setdefault(run.label, (run, curve["columns"]))
    return list(found.values())


def distinct(rows: Sequence[Row], key: str) -> list[Any]:
    """The values of a key, each once, in order of appearance."""
    return list(dict.fromkeys(row[key] for row in rows))


def unfold(columns: dict[str, list[Any]]) -> list[Row]:
    """Columns as rows.

    >>> unfold({"x": [1, 2], "y": [3, 4]})
    [{'x': 1, 'y': 3}, {'x': 2, 'y': 4}]
    """
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
