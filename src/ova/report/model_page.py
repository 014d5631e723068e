"""The page of one trained model: what it promises, answers, confuses and refuses."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ova.files import Row, write_text
from ova.metrics.calibration import BINS
from ova.predictions.sets import TEST, SetName
from ova.report import confusion, model, sections
from ova.report.decision import FIGURE as DECISION
from ova.report.examples import cards
from ova.report.figures import FIGURES, Figure
from ova.report.inspection import CONFIDENCE, OWN, Example, Inspection, Sweep
from ova.report.live_tables import live_cell
from ova.report.markup import Markup, el, join, table
from ova.report.model import ModelFacts
from ova.report.page import document, slider, theme_button
from ova.report.theme import colours
from ova.training.run_folder import Run

LIVE = "model"  # what the script calls the numbers beside the slider
RISK = replace(
    FIGURES["risk-coverage"],
    caption="Answer only what scores highest: how many of the answers are wrong? Lower is better.",
)
TRUST = replace(
    FIGURES["reliability"],
    caption="Calibrated confidences of the test rows. Bars on the diagonal are honest; below it the model "
    "claims more than it keeps, above it less. Beneath: how many answers have that confidence.",
)
TRAINING = replace(
    FIGURES["training"],
    title="Epoch by epoch",
    caption="Whole lines: validation; dotted lines: training. The epoch with the best validation loss was kept.",
)


def write_model_page(facts: ModelFacts, found: Inspection, output: Path) -> None:
    """Write the page of a model."""
    write_text(output, html(facts, found))


def html(facts: ModelFacts, found: Inspection) -> str:
    """The page as text; the same model gives the same text."""
    page = sections.Page()
    parts = {
        "promise": ("", model.section(facts)),
        "limit": ("What should its threshold be?", threshold(page, found.sweep)),
        "classes": ("Which classes does it confuse?", confused(found)),
        "mistakes": ("Where is it surely wrong?", mistakes(found.mistakes)),
        "refusals": ("What does it refuse?", refusals(found)),
        "labels": ("Which labels look wrong?", suspects(found.suspects)),
        "trust": ("Can its confidence be trusted?", trust(page, found)),
        "training": ("How was it trained?", training(page, found)),
    }
    links = [el("li", el("a", title, href=f"#{key}")) for key, (title, _) in parts.items() if title]
    body = [
        el("h1", found.title),
        el("p", found.about, class_="lead"),
        el("noscript", el("p", "The charts need JavaScript; the tables do not.", class_="missing")),
        el("nav", el("ul", links, class_="toc"), aria_label="Sections"),
        [
            el("section", el("h3", title) if title else None, content, id=key)
            for key, (title, content) in parts.items()
            if content is not None
        ],
    ]
    controls = el("div", slider(page), theme_button(), class_="inner")
    foot = "Made by ova train. Test rows are those that neither training nor threshold has seen."
    return document(page, f"ova · {found.title}", controls, join(body), foot)


def threshold(page: sections.Page, sweep: Sweep | None) -> Markup | None:
    """The slider's numbers, and where right, wrong and unknown rows lie on its scale."""
    if sweep is None:
        return el("p", "Each class has a threshold of its own, so there is none to move.")
    page.start = sweep.grid[sweep.start]
    page.live[LIVE] = {"grid": sweep.grid, "runs": [live(sweep)]}
    said = "confidence" if sweep.scale == CONFIDENCE else f"score {sweep.scale}"
    text = (
        f"It answers when its {said} is above the threshold, and says “none of the above” when it is not. The "
        "slider in the bar at the top stands at the fitted threshold; elsewhere nothing is promised. The "
        "numbers are of rows on which the threshold does not rest."
    )
    risk = [
        {"label": OWN, "seed": 0, "coverage": share, "risk": 1 - right}
        for share, right in zip(sweep.answered, sweep.accuracy, strict=True)
        if right is not None and share >= 0.05
    ]
    return join(
        el("p", text),
        numbers(sweep),
        chart(page, "decision", DECISION, sweep.bins),
        chart(page, "risk-coverage", RISK, sorted(risk, key=lambda row: row["coverage"])),
    )


def live(sweep: Sweep) -> Row:
    """What the script reads of the numbers at each threshold."""
    mixed = {SetName(name).short: {"through": list(v)} for name, v in sweep.through.items()}
    columns = {"answered": list(sweep.answered), "accuracy": list(sweep.accuracy)}
    return {"label": OWN, "seed": 0, **columns, "mixed": mixed}


def numbers(sweep: Sweep) -> Markup:
    """What the threshold costs and buys; the script keeps it up to date."""
    paint, at, row = colours([OWN])[OWN], sweep.start, live(sweep)
    cells = [live_cell(paint, [row[key][at]], value=key) for key in ("answered", "accuracy")]
    names = {SetName(name).short: values[at] for name, values in sweep.through.items()}
    cells += [live_cell(paint, [share], set=name) for name, share in names.items()]
    head = [
        "Test rows",
        "Answered",
        "Right among the answered",
        *(f"Answered of {n}" for n in names),
    ]
    body = el("tr", el("th", "at this threshold", scope="row"), cells, data_label=OWN)
    return table(head, [body], "At the threshold in the bar", "live", data_experiment=LIVE)


def chart(page: sections.Page, name: str, about: Figure, rows: Sequence[Row]) -> Markup | None:
    """A figure of this model, nothing where there is nothing to draw."""
    return sections.chart(page, LIVE, name, about, list(rows), [OWN]) if rows else None


def confused(found: Inspection) -> Markup:
    """Pairs and map."""
    return confusion.section(found.confusion, found.classes)


def mistakes(some: Sequence[Example]) -> Markup:
    """The test rows that it is most sure of and wrong about."""
    text = "Test rows whose best guess is not their label, the surest first. Some of these labels may be wrong."
    return join(el("p", text), cards(some, "No test row is wrong."))


def refusals(found: Inspection) -> Markup:
    """The most doubtful rows of the classes, and those of none that look most like them."""
    parts = [
        el("h4", "Of the classes"),
        el("p", "The test rows that score lowest: the first to be refused."),
        cards(found.doubtful, "There are no test rows."),
    ]
    for name, some in found.outside.items():
        parts += [
            el("h4", f"Of none of the classes: {SetName(name).short}"),
            el("p", "Those that score highest: the first to slip through."),
            cards(some, "There are none."),
        ]
    return join(parts)


def suspects(some: Sequence[Example]) -> Markup:
    """The rows whose label the model surely disagrees with."""
    text = (
        "Rows of training, validation and calibration where the model is surer of another class than of the label, "
        "the most contradicted first. It was trained on the training rows, so what it still disagrees with there "
        "is worth a look. That is no proof: a rare kind of row looks the same."
    )
    return join(
        el("p", text), cards(some, "None: it is never sure of another class than the label.")
    )


def trust(page: sections.Page, found: Inspection) -> Markup | None:
    """Reliability of the calibrated confidences."""
    still = found.sweep is None or found.sweep.scale != CONFIDENCE
    rows = TRUST.rows([found.run])
    text = f"By {BINS} bins of the confidence, on {test_rows(found.run):,} test rows."
    return join(el("p", text), chart(page, "reliability", replace(TRUST, still=still), rows))


def test_rows(run: Run) -> int:
    """How many rows the test set has."""
    return next((int(r["n"]) for r in run.measurements if r["dataset"] == TEST and "n" in r), 0)


def training(page: sections.Page, found: Inspection) -> Markup:
    """The epochs, the settings and everything that the manifest says."""
    return join(
        chart(page, "training", TRAINING, TRAINING.rows([found.run])),
        table(
            ["", ""], [[name, value] for name, value in found.facts.items()], "Settings", "facts-of"
        ),
        folded("The whole recipe", found.run.recipe),
        folded("Versions, machine and hashes of the data", found.run.manifest),
    )


def folded(title: str, content: Mapping[str, object]) -> Markup:
    """JSON for who wants to see it."""
    text = json.dumps(content, indent=1, ensure_ascii=False)
    return el("details", el("summary", title), el("pre", text), class_="more")
