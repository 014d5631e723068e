"""For mkdocstrings: examples in docstrings are shown as code, without a word for the parser before them."""

import re

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)


def fenced(docstring: str) -> str:
    r"""The docstring with a fence around each example.

    >>> fenced("One.\n\n>>> 1 + 1\n2\n\nTwo.")
    'One.\n\n```pycon\n>>> 1 + 1\n2\n```\n\nTwo.'
    """
    return EXAMPLE.sub(lambda match: f"```pycon\n{match.group().rstrip()}\n```", docstring)


class Examples(griffe.Extension):
    """Fences the examples of every object that has any."""

    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = fenced(obj.docstring.value)
