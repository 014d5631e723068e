"""The body of the page: for each experiment a summary, sections of figures, tables and the evidence."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from statistics import fmean
from typing import Any

from ova.files import Row
from ova.report import comparison, evidence, paper, summary, thresholds
from ova.report.figures import FIGURES, Figure
from ova.report.markup import Markup, el, join, table
from ova.report.numbers import percent, shown
from ova.report.runs import labels
from ova.report.theme import colours
from ova.training.run_folder import Run

WISHES = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995)


@dataclass(frozen=True)
class Section:
    """A part of an experiment; its figures are those that name its key."""

    title: str
    text: str = ""
    optional: bool = False  # left out where none of its figures can be drawn


SECTIONS = {
    # Only problems in the plane have these pictures.
    "space": Section("What has it learnt?", optional=True),
    "trust": Section("Can I trust its confidence?"),
    "shift": Section("Where does it break?"),
    "threshold": Section(
        "What should my threshold be?",
        "The model answers when its confidence reaches the threshold, and says “none of the above” "
        "when it does not. Move the threshold in the bar at the top: the numbers and every linked "
        "chart follow.",
    ),
    "unknown": Section("Does it notice the unknown?"),
    "training": Section("How was it trained?"),
}


@dataclass
class Page:
    """What the body collects for the script while it is being written."""

    charts: list[Row] = field(default_factory=list)
    sets: dict[str, list[Row]] = field(default_factory=dict)
    live: dict[str, Row] = field(default_factory=dict)
    number: Any = field(default_factory=count)
    start: float = thresholds.START


def experiment(page: Page, name: str, runs: Sequence[Run], old: Sequence[Run] | None) -> Markup:
    """Everything about one experiment."""
    page.live[name] = thresholds.table(runs)
    at = next(page.number)
    parts: list[Any] = [el("h2", name), facts(name, runs), contents(at, runs), first(runs)]
    parts += [summary.cards(runs), summary.overview(runs)]
    if old is not None:
        parts += [el("h3", "Against the baseline"), comparison.against(runs, old)]
    for key, about in SECTIONS.items():
        found = section(page, name, key, runs)
        if found is None:
            continue
        parts += [
            el("h3", about.title, id=f"{key}-{at}"),
            el("p", about.text) if about.text else None,
        ]
        if key == "threshold":
            parts += [
                live_table(name, page.live[name], runs, page.start),
                wishes(page.live[name], runs),
            ]
        if key == "unknown":
            parts.append(evidence.ood_table(runs))
        parts.append(found)
    printed = paper.printed_for(name)
    if printed:
        parts += [el("h3", "Beside the paper"), el("p", note(name)), paper.beside(printed, runs)]
    parts += [el("h3", "Evidence", id=f"evidence-{at}"), evidence.everything(runs)]
    return el("section", parts, class_="experiment", id=f"experiment-{at}")


def facts(name: str, runs: Sequence[Run]) -> Markup:
    """One line: what was run."""
    said = []
    for key in ("data", "model", "epochs"):
        known = sorted({str(run.recipe[key]) for run in runs if key in run.recipe})
        if known:
            said.append(f"{key} {', '.join(known)}")
    counts = {"run": len(runs), "seed": len({run.seed for run in runs})}
    said.append(", ".join(f"{n} {what}{'' if n == 1 else 's'}" for what, n in counts.items()))
    if name.endswith("-desk"):
        said.append("shorter training than the paper's, within a desktop's means")
    return el("p", " · ".join(said), class_="facts")


def contents(at: int, runs: Sequence[Run]) -> Markup:
    """Links to the sections of one experiment."""
    there = {
        key: about.title
        for key, about in SECTIONS.items()
        if not about.optional or any(figure.rows(runs) for figure in figures(key).values())
    }
    links = [
        el("li", el("a", title, href=f"#{key}-{at}"))
        for key, title in (there | {"evidence": "Evidence"}).items()
    ]
    return el("nav", el("ul", links, class_="toc"), aria_label="Sections")


def figures(key: str) -> dict[str, Figure]:
    """The figures of a section, in order."""
    return {name: figure for name, figure in FIGURES.items() if figure.section == key}


def first(runs: Sequence[Run]) -> Markup | None:
    """What speaks against one-vs-all stands before what speaks for it."""
    found = summary.shortfalls(runs)
    if not found:
        return None
    names = " and ".join([", ".join(found[:-1]), found[-1]] if len(found) > 1 else found)
    text = f"First what did not work: softmax has a better mean than every one-vs-all formulation in {names}."
    return el("p", text, class_="first")


def section(page: Page, experiment: str, key: str, runs: Sequence[Run]) -> Markup | None:
    """The figures that can be drawn, and a word on those that cannot.

    An optional section has no such word, and is None without a figure.
    """
    rows = {name: figure.rows(runs) for name, figure in figures(key).items()}
    drawn = [drawing(page, experiment, name, found, runs) for name, found in rows.items() if found]
    if SECTIONS[key].optional:
        return join(drawn) if drawn else None
    absent = [name for name, found in rows.items() if not found]
    return join(drawn, missing(absent) if absent else None)


def missing(names: Sequence[str]) -> Markup:
    """That something is not there, and what would bring it."""
    titles = ", ".join(f"“{FIGURES[name].title}”" for name in names)
    needs = list(dict.fromkeys(FIGURES[name].needs for name in names))
    return el(
        "p",
        f"Not measured in these runs: {titles}. It takes ",
        spelt("; ".join(needs)),
        ".",
        class_="missing",
    )


def spelt(text: str) -> list[Any]:
    """Text with its `code` as code."""
    return [el("code", part) if i % 2 else part for i, part in enumerate(text.split("`"))]


def drawing(page: Page, experiment: str, name: str, rows: list[Row], runs: Sequence[Run]) -> Markup:
    """A figure with its caption; the chart itself is drawn by the page's script."""
    about = FIGURES[name]
    spec = about.spec(rows, labels(runs))
    spec.pop("$schema", None)
    spec["description"] = f"{about.title} {about.caption}"
    sets = spec.pop("datasets", {})
    page.sets.update(sets)
    page.charts.append({"name": name, "experiment": experiment, "spec": spec, "sets": list(sets)})
    caption = el("figcaption", el("h4", about.title), el("p", about.caption))
    chart = el("div", class_="chart", data_chart=len(page.charts) - 1, data_name=name)
    return el("figure", caption, chart)


def live_table(name: str, live: Row, runs: Sequence[Run], start: float) -> Markup:
    """Per label what the threshold costs and buys; filled in for the first position."""
    if not live["runs"]:
        return missing(["threshold"])
    paint = colours(labels(runs))
    outside = list(dict.fromkeys(k for run in live["runs"] for k in run["mixed"]))
    at = thresholds.nearest(live["grid"], start)
    head = [
        el("th", text, scope="col")
        for text in ("Formulation", "Answered", "Right among the answered")
    ]
    head += [el("th", f"Unknown let through: {k}", scope="col") for k in outside]
    body = []
    for label in [k for k in labels(runs) if any(run["label"] == k for run in live["runs"])]:
        mine = [run for run in live["runs"] if run["label"] == label]
        cells = [
            live_cell(paint[label], [run[k][at] for run in mine], value=k)
            for k in ("answered", "accuracy")
        ]
        for k in outside:
            through = [run["mixed"][k]["through"][at] for run in mine if k in run["mixed"]]
            cells.append(live_cell(paint[label], through, set=k))
        first = el("th", summary.swatch(label, paint[label]), scope="row")
        body.append(el("tr", first, cells, data_label=label))
    caption = el("caption", "At this threshold: mean over the shown seeds, and their range")
    inner = el(
        "table",
        caption,
        el("thead", el("tr", head)),
        el("tbody", body),
        class_="live",
        data_experiment=name,
    )
    return el(
        "div",
        inner,
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=f"{name} at the threshold",
    )


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
    means = {label: mean_run(live, label) for label in labels(runs)}
    known = {label: run for label, run in means.items() if run}
    if not known:
        return None
    lowest = min(run["accuracy"][0] or 0 for run in known.values())
    wanted = [wish for wish in WISHES if wish > lowest][:3]
    body = [
        [label] + [wish_cell(run, live["grid"], wish) for wish in wanted]
        for label, run in known.items()
    ]
    if not wanted:
        return None
    head = ["Formulation"] + [f"{100 * wish:g} % of the answers right" for wish in wanted]
    caption = (
        "The lowest threshold that reaches an accuracy on the test set (means over seeds). A threshold "
        "for use should be fitted on held-out data, which also gives it a promise."
    )
    return table(head, body, caption, "wishes")


def mean_run(live: Row, label: str) -> Row | None:
    """The mean over the seeds of a label."""
    mine = [run for run in live["runs"] if run["label"] == label]
    if not mine:
        return None
    return {
        key: [mean_of(values) for values in zip(*(run[key] for run in mine), strict=True)]
        for key in ("answered", "accuracy")
    }


def mean_of(values: Sequence[float | None]) -> float | None:
    """The mean, if every value is there."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def wish_cell(run: Row, grid: Sequence[float], wish: float) -> Markup:
    """The threshold and the share it still answers."""
    at = thresholds.needed(run, grid, wish)
    if at is None:
        return el("span", "out of reach", class_="quiet")
    if at == 0:
        return el("span", el("b", "any"), " ", el("small", "answers everything"))
    return el(
        "span",
        el("b", f"{grid[at]:g}"),
        " ",
        el("small", f"answers {percent(run['answered'][at])}"),
    )


def note(name: str) -> str:
    """How the two columns compare."""
    text = "The paper's printed numbers beside ours, with 95 % intervals where seeds allow."
    if name.endswith("-desk"):
        text += " Ours come from a shorter training than the paper's, so they may differ for that reason alone."
    return text
