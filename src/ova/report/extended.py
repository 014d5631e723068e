"""The page of a model whose classes changed: what it promises now, and what moved."""

from collections.abc import Sequence
from dataclasses import dataclass

from ova.report.markup import el, table
from ova.report.small_page import small_page

HEAD = ("rows", "answered before", "right of these", "answered after", "right of these")


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What is to be said, as text."""

    done: Sequence[str]
    promise: Sequence[str]
    outcomes: Sequence[str]
    kinds: Sequence[Sequence[object]]  # a name, then what HEAD says
    classes: Sequence[Sequence[object]]


def extended_page(facts: Facts) -> str:
    """The page as text."""
    lists = {
        "What was changed": facts.done,
        "What is promised": facts.promise,
        "On rows that it has not seen": facts.outcomes,
    }
    cards = [
        el("section", el("h4", title), el("ul", [el("li", line) for line in lines]), class_="card")
        for title, lines in lists.items()
        if lines
    ]
    return small_page(
        "a model with other classes",
        [
            el("h1", "What moved?"),
            el(
                "p",
                "The same test rows, which neither the model of before nor this one was fitted on, "
                "answered by both.",
                class_="lead",
            ),
            el("div", el("div", cards, class_="cards"), class_="model"),
            table(("test rows", *HEAD), facts.kinds, "Before and after", "sheet"),
            el("h2", "By class"),
            table(("class", *HEAD), facts.classes, "The classes that stay", "sheet")
            if facts.classes
            else el("p", "No class that stays has a test row."),
        ],
    )
