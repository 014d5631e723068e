"""HTML from values: text is escaped unless it is markup already, JSON cannot leave its script."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any


class Markup(str):
    """Text that is HTML and is not escaped again."""

    __slots__ = ()


def el(name: str, *children: Any, **attributes: Any) -> Markup:
    """An element; `class_` is class, `data_x` is data-x, True an empty attribute, None none at all.

    >>> el("p", "a < b", el("br"), class_="note")
    '<p class="note">a &lt; b<br></p>'
    """
    inside = join(*children)
    return Markup(f"<{name}{written(attributes)}>{inside}" + ("" if name in VOID else f"</{name}>"))


VOID = ("br", "input", "meta", "hr", "img")


def join(*children: Any) -> Markup:
    """Children one after another; lists are spread, None is nothing, other text is escaped."""
    parts: list[str] = []
    for child in children:
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, list | tuple):
            parts.append(join(*child))
        elif child is not None:
            parts.append(escape(str(child)))
    return Markup("".join(parts))


def written(attributes: dict[str, Any]) -> str:
    """Attributes as they stand in a tag."""
    found = []
    for key, value in attributes.items():
        name = key.rstrip("_").replace("_", "-")
        if value is True:
            found.append(f" {name}")
        elif value is not None and value is not False:
            found.append(f' {name}="{escape(str(value))}"')
    return "".join(found)


# Inside a script element only these could end it, open a comment, or break a line of JavaScript.
UNSAFE = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}


def script_json(value: Any) -> Markup:
    r"""JSON that stays data inside a script element.

    >>> script_json({"class": "</script>"})
    '{"class":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(UNSAFE))


def table(
    head: Sequence[Any],
    body: Sequence[Markup | Sequence[Any]],
    caption: str,
    class_: str,
    about: str = "",
    **attributes: str,
) -> Markup:
    """A table whose first column names the row; cells, and whole rows, may be markup."""
    top = el("tr", [el("th", cell, scope="col") for cell in head])
    rows = [
        row
        if isinstance(row, Markup)
        else el("tr", el("th", row[0], scope="row"), [el("td", cell) for cell in row[1:]])
        for row in body
    ]
    parts = el("caption", caption), el("thead", top), el("tbody", rows)
    inner = el("table", parts, class_=class_, **attributes)
    return el(
        "div", inner, class_="scroll", tabindex="0", role="region", aria_label=about or caption
    )
