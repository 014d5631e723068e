"""Runs of today against runs of yesterday: differences with their intervals."""

from collections.abc import Sequence
from typing import Any

from ova.files import Row
from ova.report.intervals import Estimate, difference
from ova.report.markup import Markup, el, table
from ova.report.numbers import interval, shown, signed
from ova.report.runs import experiments, labels
from ova.report.summary import MEASURES, Measure
from ova.training.run_folder import Run


def partner(experiment: str, baseline: Sequence[Run]) -> list[Run]:
    """The baseline's runs to compare with: of the same experiment, or of its only one."""
    grouped = experiments(baseline)
    if experiment in grouped:
        return grouped[experiment]
    return list(baseline) if len(grouped) == 1 else []


def against(runs: Sequence[Run], baseline: Sequence[Run]) -> Markup:
    """One row per label and measure that both sides have."""
    names = [name for name in labels(runs) if name in labels(baseline)]
    body = [
        row
        for name in names
        for measure in MEASURES
        if (row := line(name, measure, of(measure, runs, name), of(measure, baseline, name)))
    ]
    if not body:
        return el(
            "p", "The baseline has no formulation and measurement in common.", class_="missing"
        )
    head = ["Formulation", "Measure", "Baseline", "Now", "Difference", "95 % interval", "Verdict"]
    return table(head, body, "Differences from the baseline", "baseline")


def of(measure: Measure, runs: Sequence[Run], name: str) -> list[Row]:
    """The values of a measure for one label."""
    return [row for row in measure.rows(runs) if row["label"] == name]


def line(name: str, measure: Measure, new: list[Row], old: list[Row]) -> list[Any] | None:
    """One comparison, or None when a side has no value."""
    if not new or not old:
        return None
    found, how = difference(new, old)
    before, after = mean(old), mean(new)
    return [
        name,
        measure.name,
        shown(before, measure.unit),
        shown(after, measure.unit),
        el("b", signed(found.mean, measure.unit)),
        el("span", interval(found, measure.unit), " ", el("small", how)),
        verdict(found, measure.higher),
    ]


def mean(rows: list[Row]) -> float:
    """The mean of the rows' values."""
    return float(sum(row["value"] for row in rows) / len(rows))


def verdict(found: Estimate, higher: bool) -> Markup:
    """Better or worse when the interval leaves out zero, else no clear difference."""
    if found.low is None or found.high is None or found.low <= 0 <= found.high:
        return el("span", "no clear difference", class_="badge tied")
    good = (found.mean > 0) == higher
    return el("span", "better" if good else "worse", class_="badge" if good else "badge bad")
