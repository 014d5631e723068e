"""The tables of the threshold section: what a threshold costs and buys, and which one a wish takes."""

from collections.abc import Sequence
from statistics import fmean

from ova.files import Row
from ova.report.markup import Markup, el, table
from ova.report.numbers import percent, shown
from ova.report.runs import labels
from ova.report.summary import swatch
from ova.report.theme import colours
from ova.report.thresholds import nearest, needed
from ova.training.run_folder import Run

WISHES = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


def live_table(name: str, live: Row, runs: Sequence[Run], start: float) -> Markup | None:
    """Per label what the threshold costs and buys; filled in for the slider's first position."""
    if not live["runs"]:
        return None
    paint = colours(labels(runs))
    outside = list(dict.fromkeys(k for run in live["runs"] for k in run["mixed"]))
    at = nearest(live["grid"], start)
    body = []
    for label, mine in by_label(live, runs).items():
        cells = [
            live_cell(paint[label], [run[k][at] for run in mine], value=k)
            for k in ("answered", "accuracy")
        ]
        for k in outside:
            through = [run["mixed"][k]["through"][at] for run in mine if k in run["mixed"]]
            cells.append(live_cell(paint[label], through, set=k))
        first = el("th", swatch(label, paint[label]), scope="row")
        body.append(el("tr", first, cells, data_label=label))
    head = ["Formulation", "Answered", "Right among the answered"]
    head += [f"Unknown let through: {k}" for k in outside]
    caption = "At this threshold: mean over the shown seeds, and their range"
    about = f"{name} at the threshold"
    return table(head, body, caption, "live", about=about, data_experiment=name)


def by_label(live: Row, runs: Sequence[Run]) -> dict[str, list[Row]]:
    """The values of each label's runs, for the labels that have any."""
    found = {k: [run for run in live["runs"] if run["label"] == k] for k in labels(runs)}
    return {label: mine for label, mine in found.items() if mine}


def live_cell(colour: str, values: Sequence[float | None], **data: str) -> Markup:
    """A number with a meter; the script keeps both up to date."""
    known = [value for value in values if value is not None]
    mean = fmean(known) if known else None
    bar = el("i", style=f"width:{100 * (mean or 0):.1f}%;background:{colour}")
    meter = el("span", bar, class_="meter", aria_hidden="true")
    attributes = {f"data_{key}": value for key, value in data.items()}
    return el("td", el("b", shown(mean, "%")), " ", el("small"), meter, **attributes)


def wishes(live: Row, runs: Sequence[Run]) -> Markup | None:
    """For a wished accuracy of the answered, the threshold that reaches it and what it costs."""
    known = {label: mean_run(mine) for label, mine in by_label(live, runs).items()}
    lowest = min((run["accuracy"][0] or 0 for run in known.values()), default=1)
    wanted = [wish for wish in WISHES if wish > lowest][:3]
    if not wanted:
        return None
    body = [
        [label] + [wish_cell(run, live["grid"], wish) for wish in wanted]
        for label, run in known.items()
    ]
    head = ["Formulation"] + [f"{100 * wish:g} % of the answers right" for wish in wanted]
    caption = (
        "The lowest threshold that reaches an accuracy on the test set (means over seeds). A threshold "
        "for use should be fitted on held-out data, which also gives it a promise."
    )
    return table(head, body, caption, "wishes")


def mean_run(mine: Sequence[Row]) -> Row:
    """The mean over seeds at each threshold, None where a seed has no value."""
    return {
        key: [
            None if None in values else fmean(values)
            for values in zip(*(run[key] for run in mine), strict=True)
        ]
        for key in ("answered", "accuracy")
    }


def wish_cell(run: Row, grid: Sequence[float], wish: float) -> Markup:
    """The threshold and the share it still answers."""
    at = needed(run, grid, wish)
    if at is None:
        return el("span", "out of reach", class_="quiet")
    if at == 0:
        return el("span", el("b", "any"), " ", el("small", "answers everything"))
    answered = f"answers {percent(run['answered'][at])}"
    return el("span", el("b", f"{grid[at]:g}"), " ", el("small", answered))
