"""Inputs of a model with what it says of them: a card each, with the text, the picture or the row."""

import base64
from collections.abc import Sequence

from ova.report.inspection import Example
from ova.report.markup import Markup, el
from ova.report.numbers import percent


def cards(examples: Sequence[Example], nothing: str) -> Markup:
    """One card per input, or the sentence that there is none."""
    if not examples:
        return el("p", nothing, class_="quiet")
    images = any(example.picture for example in examples)
    class_ = "examples images" if images else "examples"
    return el("ul", [el("li", card(example)) for example in examples], class_=class_)


def card(example: Example) -> list[Markup | None]:
    """Input, label, answer, and where it stands."""
    right, said = example.guess == example.label, outcome(example)
    told = percent(example.confidence) if example.confidence >= 0.0005 else "<0.1 %"
    return [
        el("img", src=source(example.picture), alt="") if example.picture else None,
        el("blockquote", example.text) if example.text else None,
        el("p", el("b", example.guess), f" with {told}"),
        el("p", "label: ", el("b", example.label)) if example.label and not right else None,
        el("p", el("small", said)) if said else None,
        el("p", el("small", example.place)),
    ]


def outcome(example: Example) -> str:
    """Whether the best guess is right, and what the threshold does with it."""
    if not example.known:
        return {True: "answered, wrongly", False: "refused, rightly", None: ""}[example.answered]
    said = "right" if example.guess == example.label else "wrong"
    return {True: f"{said}, answered", False: f"{said}, refused", None: said}[example.answered]


def source(picture: bytes) -> str:
    """A picture inside the page."""
    return f"data:image/png;base64,{base64.b64encode(picture).decode('ascii')}"
