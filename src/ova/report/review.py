"""The page of a review: groups of refused inputs, the largest first, with what is typical of each."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from ova.report.markup import Markup, el, join
from ova.report.small_page import small_page

LONGEST = 300  # letters of an input that are shown


@dataclass(frozen=True, kw_only=True)
class Group:
    """What is said of a group."""

    name: str  # as in the sheet; empty: the rows that are like no others
    size: int
    answered: int  # of its rows, though doubtfully
    words: Sequence[str]  # that are typical
    nearest: Sequence[str]  # classes
    typical: Sequence[str]  # inputs
    others: Sequence[str]
    pictures: Sequence[bytes] = ()  # PNG files


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What the page says."""

    summary: Sequence[str]
    sheet: str  # the name of the file to fill in
    groups: Sequence[Group]


def review_page(facts: Facts) -> str:
    """The page as text."""
    return small_page(
        "what was refused",
        [
            el("h1", "What was refused?"),
            el("p", "Inputs that are like each other, the most first.", class_="lead"),
            el("ul", [el("li", line) for line in facts.summary]),
            how_to(facts.sheet),
            [group(each) for each in facts.groups],
        ],
    )


def how_to(sheet: str) -> Markup:
    """What to write where."""
    said = (
        "one of the model’s classes, “new: NAME” for a class that it is to have, “none” for inputs "
        "that belong to none of them, or “leave”, which is also what an empty cell means"
    )
    return el(
        "p",
        "Fill in the column ",
        el("b", "group_label"),
        f" of {sheet} in one row of a group for the whole group, and ",
        el("b", "label"),
        f" where a row differs: {said}. Then ",
        el("code", f"ova extend MODEL {sheet} --data DATA --out MODEL2"),
        ".",
        class_="first",
    )


def group(each: Group) -> Markup:
    """A group: its size, words and neighbours, typical inputs, and the others behind a click."""
    title = f"Group {each.name}" if each.name else "Like no others"
    tags = f" {each.size} inputs" + f", {each.answered} of them answered" * bool(each.answered)
    words = join([join(el("b", word), " ") for word in each.words])
    near = ", ".join(each.nearest)
    return el(
        "section",
        el("h3", title),
        el("span", tags, class_="tag"),
        el("p", words, class_="words") if each.words else None,
        el("p", f"Nearest classes: {near}", class_="facts") if near else None,
        el("div", [picture(each_) for each_ in each.pictures], class_="thumbs")
        if each.pictures
        else None,
        el("ul", [el("li", short(text)) for text in each.typical]) if each.typical else None,
        more(each.others),
        class_="group",
    )


def more(others: Sequence[str]) -> Markup | None:
    """The inputs that are not shown at once."""
    if not others:
        return None
    items = el("ul", [el("li", short(text)) for text in others])
    return el("details", el("summary", f"{len(others)} more"), items)


def picture(png: bytes) -> Markup:
    """A picture inside the page."""
    source = f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"
    return el("img", src=source, alt="", loading="lazy")


def short(text: str) -> str:
    """An input in one line.

    >>> short("where  is" + chr(10) + "my card")
    'where is my card'
    """
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ..."
