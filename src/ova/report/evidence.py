"""The evidence: OOD numbers, every measurement, and the manifest that each number goes back to."""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from ova.files import Row
from ova.metrics.choice import PLAIN
from ova.predictions.sets import SetName
from ova.report import select
from ova.report.intervals import Estimate, basis, estimate, estimates
from ova.report.markup import Markup, el, join, table
from ova.report.numbers import interval, plain
from ova.report.runs import labels
from ova.report.scores import BEST, CHOSEN, chosen, measured, of_label, picked_by
from ova.training.run_folder import Run

OOD = {"auroc": "AUROC ↑", "aupr_outside": "AUPR, unknown positive ↑", "fpr95": "FPR at 95 % TPR ↓"}
OOD |= {"auroc_200": "AUROC on 200 thresholds"}


OOD |= {"aurc": "AURC, test mixed in ↓"}
LACKING = "not measured by this score in this experiment"


def ood_table(runs: Sequence[Run]) -> Markup | None:
    """Per OOD set, label and score the numbers of telling apart; the page shows one score at a time."""
    metrics = [m for m in OOD if any(select.over([run], m, meant(m)) for run in runs)]
    body = [row for way in ways(runs) for row in ood_rows(runs, metrics, way)]
    if not body:
        return None
    head = ["Unknown inputs", "Formulation", "Score", *(OOD[m] for m in metrics)]
    none = el("tr", el("td", LACKING, colspan=len(head)), class_="none", hidden=True)
    shown = (
        each
        for dataset in select.outside(runs)
        for each in estimates(select.values(runs, "auroc", dataset), labels(runs)).values()
    )
    caption = (
        "Telling unknown inputs from known ones by the score in the bar above; chance is an "
        f"AUROC of 0.5; 95 % intervals {basis(shown)}"
    )
    return table(head, [*body, none], caption, "ood")


def ways(runs: Sequence[Run]) -> list[str]:
    """What the rows of the table may be by: max p, the chosen and the best score, and each of them."""
    by = measured(runs)
    if len(by) < 2:
        return [PLAIN]
    picked = [CHOSEN] if any(map(chosen, runs)) else []
    return [PLAIN, *picked, BEST, *(name for name in by if name != PLAIN)]


def meant(metric: str) -> Callable[[SetName], bool]:
    """The sets that a column of the table is measured on."""
    return (lambda name: name.mixed) if metric == "aurc" else (lambda name: name.outside)


def ood_rows(runs: Sequence[Run], metrics: Sequence[str], way: str) -> list[Markup]:
    """The rows of one score, or of the one that each formulation chose or would have done best with."""
    rows = []
    for dataset in select.outside(runs):
        for label in labels(runs):
            picks, name = picked_by(way, of_label(runs, label))
            cells = [value(of_set(picks, m, dataset)) for m in metrics]
            if any(cell != QUIET for cell in cells):
                columns = [el("td", cell) for cell in (label, name, *cells)]
                head = el("th", dataset.short, scope="row")
                rows.append(el("tr", head, columns, data_score=way, hidden=way != PLAIN))
    return rows


def of_set(picks: Sequence[tuple[Run, str]], metric: str, dataset: SetName) -> Estimate | None:
    """The estimate of a metric on one outside set, each run by its score."""
    where = dataset.with_test if metric == "aurc" else dataset
    rows = [row for run, name in picks for row in select.values([run], metric, where, name)]
    return estimate(rows) if rows else None


QUIET = el("span", "–", class_="quiet")


def value(found: Estimate | None) -> Markup:
    """A value with its interval."""
    if found is None:
        return QUIET
    return el("span", el("b", plain(found.mean)), " ", el("small", interval(found, "")))


def everything(runs: Sequence[Run]) -> Markup:
    """Folded away: all measurements, and where they come from."""
    return join(
        el("details", el("summary", "Every measurement"), all_rows(runs), class_="more"),
        el("details", el("summary", "Runs, commands and versions"), manifests(runs), class_="more"),
    )


def all_rows(runs: Sequence[Run]) -> Markup:
    """Means over seeds of everything measured, but for single shifted sets, which the maps show."""
    names = labels(runs)
    cells: dict[tuple[str, str, str], dict[str, list[float]]] = {}
    for run in runs:
        for row in run.measurements:
            if row["value"] is None or SetName(row["dataset"]).shifted:
                continue
            key = (str(row["dataset"]), str(row["metric"]), parameters(row))
            cells.setdefault(key, {}).setdefault(run.label, []).append(row["value"])
    if not cells:
        return el("p", "Nothing was measured in these runs.", class_="missing")
    body = [[*key, *(mean(found.get(name)) for name in names)] for key, found in cells.items()]
    return table(["Set", "Metric", "Parameters", *names], body, "Means over seeds", "all")


def parameters(row: Row) -> str:
    """What a measurement was computed with, as text."""
    known = ("dataset", "metric", "value", "n", *SPREAD, "why", *BOX)
    return ", ".join(f"{key} {value}" for key, value in row.items() if key not in known)


SPREAD = ("low", "high", "draws", "halves", "excess")
BOX = ("minimum", "lower_quartile", "median", "upper_quartile", "maximum", "types")


def mean(values: list[float] | None) -> str:
    """The mean to five digits."""
    return "–" if not values else f"{sum(values) / len(values):.5g}"


def manifests(runs: Sequence[Run]) -> Markup:
    """One row per run, then what the runs share: versions, host and the hashes of the data."""
    body = [
        [
            el("code", f"{run.experiment}/{run.id}"),
            run.label,
            run.seed,
            el("code", run.manifest.get("command", "not recorded")),
            run.manifest.get("started", "–"),
            seconds(run.manifest.get("seconds")),
            resumed(run.manifest.get("resumed")),
            el("details", el("summary", "recipe"), el("pre", pretty(run.recipe))),
        ]
        for run in runs
    ]
    head = ["Run", "Formulation", "Seed", "Command", "Started", "Seconds", "Resumed", "Recipe"]
    return join(
        table(head, body, "Runs", "runs"),
        [shared(runs, key, title) for key, title in SHARED.items()],
    )


SHARED = {"ova": "Version of ova", "versions": "Versions", "host": "Host"}
SHARED |= {"data": "SHA-256 of the data"}


def shared(runs: Sequence[Run], key: str, title: str) -> Markup:
    """The distinct values of a part of the manifests, and how many runs have each."""
    found = Counter(pretty(run.manifest.get(key, "not recorded")) for run in runs)
    blocks = [
        el("pre", text if len(found) == 1 else f"{n} runs: {text}") for text, n in found.items()
    ]
    return join(el("h4", title), blocks)


def seconds(stages: Any) -> str:
    """The time of all stages together."""
    if not isinstance(stages, dict):
        return "–"
    return f"{sum(s for s in stages.values() if isinstance(s, int | float)):.0f}"


def resumed(entries: Any) -> str:
    """When an interrupted run was taken up again: after which epochs, in which later stages."""
    if not isinstance(entries, list):
        return "not recorded"
    told = (
        f"after epoch {entry['epoch']}" if "epoch" in entry else f"in {entry.get('stage')}"
        for entry in entries
        if isinstance(entry, dict)
    )
    return ", ".join(told) or "never"


def pretty(value: Any) -> str:
    """JSON to read, or plain text."""
    return value if isinstance(value, str) else json.dumps(value, indent=1, ensure_ascii=False)
