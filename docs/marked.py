"""Parts of a document that a program writes, between <!-- name --> and <!-- end of name -->."""

import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def renew(path: Path, parts: Mapping[str, Callable[[], str]], command: str) -> None:
    """Write each marked part anew; with --check only say that it would change, and exit with 1."""
    old = path.read_text(encoding="utf-8")
    new = renewed(old, parts)
    if "--check" not in sys.argv:
        path.write_text(new, encoding="utf-8")
    elif new != old:
        sys.exit(f"{path.name} is not up to date; run: {command}")


def renewed(text: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The text with the marked parts written anew."""
    for name, make in parts.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        part = f"{begin}\n{make()}\n{end}"
        text = pattern.sub(lambda _, part=part: part, text)
    return text
