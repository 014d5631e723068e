"""Runs of today against runs of yesterday: differences with their intervals."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ova.files import Row
from ova.report.intervals import Spread, difference, sign
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
    body = []
    for name in (name for name in labels(runs) if name in labels(baseline)):
        for measure in MEASURES:
            sides = (measure.rows(runs), measure.rows(baseline))
            new, old = ([row for row in side if row["label"] == name] for side in sides)
            if new and old:
                body.append(line(name, measure, new, old))
    if not body:
        return el(
            "p", "The baseline has no formulation and measurement in common.", class_="missing"
        )
    head = ["Formulation", "Measure", "Baseline", "Now", "Difference", "95 % interval", "Verdict"]
    return table(head, body, "Differences from the baseline", "baseline")


def line(name: str, measure: Measure, new: Sequence[Row], old: Sequence[Row]) -> list[Any]:
    """One comparison."""
    found = difference(new, old)
    before, after = (fmean(row["value"] for row in side) for side in (old, new))
    if found is None:
        moved, shown_interval = after - before, el("small", "one seed: no interval")
    else:
        moved, how = found.mean, found.how
        how += ", and test examples" if found.examples is not None else ", on this test set"
        shown_interval = el("span", interval(found.at(), measure.unit), " ", el("small", how))
    return [
        name,
        measure.name,
        shown(before, measure.unit),
        shown(after, measure.unit),
        el("b", signed(moved, measure.unit)),
        shown_interval,
        verdict(found, measure.higher),
    ]


def verdict(found: Spread | None, higher: bool) -> Markup:
    """Better or worse when the interval over seeds and test examples leaves out zero."""
    if found is not None and found.examples is None:
        return el("span", "not tried on other examples", class_="badge tied")
    if not (which := sign(found)):
        return el("span", "no clear difference", class_="badge tied")
    good = (which > 0) == higher
    return el("span", "better" if good else "worse", class_="badge" if good else "badge bad")
