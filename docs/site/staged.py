"""A document as a page of the site: its links lead to pages, and its blocks begin where Markdown wants them."""

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from docs.site.places import ROOT

FENCE = re.compile(r"^(`{3,}).*?^\1$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<label>(?:[^\[\]]|\[[^\]]*\])*)\]\((?P<target>[^()\s]+)\)")
INLINE = re.compile(r"`[^`\n]+`")
ITEM = re.compile(r"(?:[-*]|\d+\.) ")


@dataclass(frozen=True)
class Document:
    """Where a document is in the repository and on the site, and where all the others are."""

    file: str
    page: str
    pages: Mapping[str, str]  # from files of the repository to those of the site

    def target(self, link: str) -> str | None:
        """The link as it is on the site; None for what is in the repository but not there."""
        path, anchor = posixpath.normpath(link.partition("#")[0]), link.partition("#")[2]
        if link.startswith(("http://", "https://", "data:", "#")):
            return link
        file = posixpath.normpath(posixpath.join(posixpath.dirname(self.file), path))
        to = self.pages.get(file)
        if to is None and not (ROOT / file).exists():
            raise ValueError(f"{self.file} has a link that leads nowhere: {link}")
        if to is None:
            return None
        there = posixpath.relpath(to, posixpath.dirname(self.page) or ".")
        return f"{there}#{anchor}" if anchor else there


def on_the_site(text: str, document: Document) -> str:
    """The text of the page.

    >>> document = Document("docs/a.md", "a.md", {"README.md": "index.md"})
    >>> on_the_site("[start](../README.md#install), [runs](../results/), `[x](y)`", document)
    '[start](index.md#install), runs, `[x](y)`'
    """
    return "".join(
        part if part.startswith("```") else separated(linked(part, document))
        for part in parts(text, FENCE)
    )


def parts(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The text in pieces: what lies between matches, and the matches."""
    end = 0
    for match in pattern.finditer(text):
        yield text[end : match.start()]
        yield match.group()
        end = match.end()
    yield text[end:]


def linked(text: str, document: Document) -> str:
    """The text with its links changed, but not those in code."""
    # A label may hold code, so code is taken out before links are looked for, and put back.
    kept = INLINE.findall(text)
    plain = INLINE.sub("\0", text)
    codes = iter(kept)

    def leads(match: re.Match[str]) -> str:
        to = document.target(match["target"])
        return match["label"] if to is None else f"{match['image']}[{match['label']}]({to})"

    return re.sub("\0", lambda _: next(codes), LINK.sub(leads, plain))


def separated(text: str) -> str:
    r"""An empty line before each list that follows a paragraph: code hosts need none, this Markdown does.

    >>> separated("There are:\n- one\n  of them\n- two\n")
    'There are:\n\n- one\n  of them\n- two\n'
    """
    lines: list[str] = []
    for line in text.split("\n"):
        before = lines[-1] if lines else ""
        inside = ITEM.match(before) or before.startswith(" ") or not before.strip()
        if ITEM.match(line) and not inside:
            lines.append("")
        lines.append(line)
    return "\n".join(lines)
