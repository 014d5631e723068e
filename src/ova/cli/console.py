"""The console: names are printed as they are, whatever their characters would mean to it."""

import sys
from io import TextIOWrapper

from rich.console import Console


def plain_console(*, stderr: bool = False) -> Console:
    """A console that takes nothing in a text for colours, links or emoji."""
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def print_anything() -> None:
    r"""Let characters that the terminal does not know become escapes like \udce9, not errors."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
