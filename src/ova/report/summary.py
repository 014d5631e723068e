"""The summary: four questions, an answer to each, and the table that the answers come from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ova.files import Row
from ova.report import scores, select
from ova.report.intervals import BOTH, Estimate, Verdict, basis, estimates, verdict
from ova.report.markup import Markup, el, table
from ova.report.numbers import interval, shown
from ova.report.runs import labels
from ova.report.theme import colours
from ova.training.recipe import OWN
from ova.training.run_folder import Run


@dataclass(frozen=True)
class Measure:
    """One column of the summary."""

    name: str
    question: str
    unit: str
    higher: bool
    needs: str
    rows: Callable[[Sequence[Run]], list[Row]]

    def table(self, runs: Sequence[Run]) -> dict[str, Estimate]:
        """The estimate of every label that was measured."""
        return estimates(self.rows(runs), labels(runs))

    def verdict(self, runs: Sequence[Run]) -> Verdict | None:
        """Which label is best, if any was measured."""
        return verdict(self.rows(runs), labels(runs), self.higher)


MEASURES = (
    Measure(
        "Accuracy", "How often is it right?", "%", True, "the accuracy of the test set",
        lambda runs: select.values(runs, "accuracy", "test"),
    ),
    Measure(
        "ECE", "Does its confidence mean what it says?", "", False, "the ECE of the test set",
        lambda runs: select.values(runs, "ece", "test"),
    ),
    Measure(
        "ECE, strongest shift", "And when the inputs drift far?", "", False, "the ECE of shifted sets",
        lambda runs: select.strongest(runs, "ece"),
    ),
    Measure(
        "OOD AUROC", "Does it notice what it has never seen?", "", True, "the AUROC against an OOD set",
        lambda runs: select.over_ood(runs, "auroc"),
    ),
)  # fmt: skip


NAMED = 3  # others that a card has room for
TESTED = "; a difference is clear if it would show with other seeds and other test examples"


def cards(runs: Sequence[Run]) -> Markup:
    """One card per question, with the best value and whether it is clearly the best."""
    every = [card(measure, runs) for measure in asked(runs)]
    return el("div", every, scores.card(runs), class_="cards")


def asked(runs: Sequence[Run]) -> list[Measure]:
    """The measures that stand in the summary; of models of own data those that were measured."""
    own = all(run.recipe.get("data") == OWN for run in runs)
    return [measure for measure in MEASURES if not own or measure.rows(runs)]


def card(measure: Measure, runs: Sequence[Run]) -> Markup:
    """The answer to one question."""
    found, said = measure.table(runs), measure.verdict(runs)
    if said is None:
        body = [
            el("p", "not measured", class_="big quiet"),
            el("p", f"This needs {measure.needs}."),
        ]
    else:
        best = found[said.best]
        body = [
            el("p", shown(best.mean, measure.unit), class_="big"),
            el("p", sentence(said, len(found)), class_="verdict"),
        ]
    return el(
        "section",
        el("h4", measure.question),
        body,
        el("p", measure.name, class_="unit"),
        class_="card",
    )


def sentence(said: Verdict, count: int) -> str:
    """The verdict in words.

    >>> sentence(Verdict("ova", ("dm",), BOTH), 4)
    'ova; no clear difference from dm'
    >>> sentence(Verdict("ova", (), BOTH), 4), sentence(Verdict("ova", ("dm",), "one seed"), 2)
    ('ova, clearly ahead', 'ova; one seed, so no clear difference can be claimed')
    """
    if count == 1:
        return f"{said.best}, the only one here"
    if said.basis == "one seed":
        return f"{said.best}; one seed, so no clear difference can be claimed"
    if said.basis != BOTH:
        return f"{said.best} has the best mean over seeds, on this test set"
    if not said.tied:
        return f"{said.best}, clearly ahead"
    return f"{said.best}; no clear difference from {others(said.tied, count)}"


def others(tied: Sequence[str], count: int) -> str:
    """Those of `count` labels that the best is not clearly ahead of: by name if they are few.

    >>> others(["dm"], 3), others(["dm", "ova"], 3)
    ('dm', 'any other')
    """
    if len(tied) == count - 1 and count > 2:
        return "any other"
    return listed(tied) if len(tied) <= NAMED else f"{len(tied)} of the {count - 1} others"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["dm"]), listed(["dm", "ova", "ova-dm"])
    ('dm', 'dm, ova and ova-dm')
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def overview(runs: Sequence[Run]) -> Markup:
    """The table of all labels and measures, with intervals; the best is marked."""
    names = labels(runs)
    paint = colours(names)
    columns = [(measure, measure.table(runs), measure.verdict(runs)) for measure in asked(runs)]
    head = ["Formulation"] + [f"{m.name} {'↑' if m.higher else '↓'}" for m in asked(runs)]
    body = [
        [swatch(name, paint[name])]
        + [cell(found, name, measure.unit, said) for measure, found, said in columns]
        for name in names
    ]
    tested = any(said.basis == BOTH for _, _, said in columns if said)
    over = basis(each for _, found, _ in columns for each in found.values())
    caption = f"Means with 95 % intervals {over}" + (TESTED if tested else "")
    return table(head, body, caption, "summary")


def swatch(label: str, colour: str) -> Markup:
    """A label with its colour beside it."""
    return el("span", el("i", class_="swatch", style=f"background:{colour}"), label, class_="label")


def cell(found: dict[str, Estimate], name: str, unit: str, said: Verdict | None) -> Markup:
    """A value, its interval as a bar on the column's own axis, and the interval in figures."""
    if name not in found:
        return el("span", "not measured", class_="quiet")
    estimate = found[name]
    mark = badge(said, name) if said and len(found) > 1 else None
    return el(
        "div",
        el("b", shown(estimate.mean, unit)),
        mark,
        whisker(found, name),
        el("small", interval(estimate, unit)),
        class_="cell",
    )


def badge(said: Verdict, name: str) -> Markup | None:
    """Best, or as good as the best for all that can be told."""
    tested = said.basis == BOTH
    if name == said.best:
        return el("span", "best" if tested and not said.tied else "best mean", class_="badge")
    if tested and name in said.tied:
        return el("span", "no clear difference", class_="badge tied")
    return None


def whisker(found: dict[str, Estimate], name: str) -> Markup:
    """The interval as a line with a dot, on an axis shared by the column."""
    ends = [v for e in found.values() for v in (e.low, e.high, e.mean) if v is not None]
    low, span = min(ends), (max(ends) - min(ends)) or 1.0
    mine, line = found[name], None
    if mine.low is not None and mine.high is not None:
        x1, x2 = (f"{4 + 92 * (v - low) / span:.1f}" for v in (mine.low, mine.high))
        line = el("line", x1=x1, x2=x2, y1=5, y2=5)
    dot = el("circle", cx=f"{4 + 92 * (mine.mean - low) / span:.1f}", cy=5, r=2.6)
    return el("svg", line, dot, viewBox="0 0 100 10", class_="whisker", aria_hidden="true")


def shortfalls(runs: Sequence[Run]) -> list[str]:
    """Where softmax has a better mean than every one-vs-all formulation; a report says that first."""
    found = []
    for measure in MEASURES:
        table = measure.table(runs)
        ours = [e.mean for k, e in table.items() if k.split(" ")[0].startswith("ova")]
        if "softmax" not in table or not ours:
            continue
        theirs = table["softmax"].mean
        behind = theirs > max(ours) if measure.higher else theirs < min(ours)
        if behind:
            found.append(measure.name.replace("Accuracy", "accuracy"))
    return found
