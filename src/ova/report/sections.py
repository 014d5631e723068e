"""The body of the page: for each experiment a summary, sections of figures, tables and the evidence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ova.files import Row
from ova.report import comparison, evidence, paper, scores, summary, thresholds
from ova.report.figures import FIGURES, Figure
from ova.report.live_tables import live_table, wishes
from ova.report.markup import Markup, el, join
from ova.report.runs import labels
from ova.training.recipe import OWN
from ova.training.run_folder import Run


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
    start: float = thresholds.START


def experiment(page: Page, name: str, runs: Sequence[Run], old: Sequence[Run] | None) -> Markup:
    """Everything about one experiment."""
    at = len(page.live)
    live = page.live[name] = thresholds.table(runs)
    bodies = {key: body for key in SECTIONS if (body := section(page, name, key, runs))}
    tables = {
        "threshold": [live_table(name, live, runs, page.start), wishes(live, runs)],
        "unknown": [evidence.ood_table(runs)],
    }
    parts: list[Any] = [el("h2", name), facts(name, runs), contents(at, bodies), first(runs)]
    parts += [summary.cards(runs), summary.overview(runs)]
    if old is not None:
        parts += [el("h3", "Against the baseline"), comparison.against(runs, old)]
    for key, body in bodies.items():
        about = SECTIONS[key]
        text = el("p", about.text) if about.text else None
        parts += [el("h3", about.title, id=f"{key}-{at}"), text, tables.get(key), body]
    if printed := paper.printed_for(name):
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


def contents(at: int, keys: Iterable[str]) -> Markup:
    """Links to the sections of one experiment."""
    titles = {key: SECTIONS[key].title for key in keys} | {"evidence": "Evidence"}
    links = [el("li", el("a", title, href=f"#{key}-{at}")) for key, title in titles.items()]
    return el("nav", el("ul", links, class_="toc"), aria_label="Sections")


def first(runs: Sequence[Run]) -> Markup | None:
    """What speaks against one-vs-all stands before what speaks for it."""
    parts = []
    if found := summary.shortfalls(runs):
        where = summary.listed(found)
        parts.append(f"softmax has a better mean than every one-vs-all formulation in {where}")
    parts += scores.free_rivals(runs)
    if not parts:
        return None
    return el("p", "First what did not work: ", "; ".join(parts), ".", class_="first")


def section(page: Page, experiment: str, key: str, runs: Sequence[Run]) -> Markup | None:
    """The figures that can be drawn, and a word on those that cannot.

    An optional section has no such word, and is None without a figure.
    """
    rows = {name: f.rows(runs) for name, f in FIGURES.items() if f.section == key}
    drawn = [drawing(page, experiment, name, found, runs) for name, found in rows.items() if found]
    # Nobody who compares models of own data asked for shifts or searches.
    if SECTIONS[key].optional or all(run.recipe.get("data") == OWN for run in runs):
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
    """A figure of the runs of an experiment."""
    return chart(page, experiment, name, FIGURES[name], rows, labels(runs))


def chart(
    page: Page, experiment: str, name: str, about: Figure, rows: list[Row], called: Sequence[str]
) -> Markup:
    """A figure with its caption; the chart itself is drawn by the page's script."""
    spec = about.spec(rows, called)
    spec.pop("$schema", None)
    if about.still:
        spec["usermeta"] = {**spec.get("usermeta", {}), "still": True}
    spec["description"] = f"{about.title} {about.caption}"
    sets = spec.pop("datasets", {})
    page.sets.update(sets)
    page.charts.append({"name": name, "experiment": experiment, "spec": spec, "sets": list(sets)})
    caption = el("figcaption", el("h4", about.title), el("p", about.caption))
    place = el("div", class_="chart", data_chart=len(page.charts) - 1, data_name=name)
    return el("figure", caption, place)


def note(name: str) -> str:
    """How the two columns compare."""
    text = (
        "The paper's printed numbers beside ours, with 95 % intervals over seeds, on this test set."
    )
    if name.endswith("-desk"):
        text += " Ours come from a shorter training than the paper's, so they may differ for that reason alone."
    return text
