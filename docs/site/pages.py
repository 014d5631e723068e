"""Every page of the site by its name, the pictures they show, and the settings that place them."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from docs.site import gallery, notebook, reference
from docs.site.places import DOCS, HERE, ROOT
from docs.site.staged import Document, on_the_site

SETTINGS = HERE / "mkdocs.yml"
ABOVE: Mapping[str, str] = MappingProxyType(
    {
        "README.md": "index.md",
        "CONTRIBUTING.md": "contributing.md",
        "CHANGELOG.md": "changelog.md",
    }
)


def every_page(run: bool) -> dict[str, str]:
    """The pages by their names on the site; `run` runs the notebooks for their outputs."""
    where = documents()
    there = where | pictures()
    copied = {
        name: on_the_site(written(ROOT / file, run), Document(file, name, there))
        for file, name in where.items()
    }
    made = {f"reference/{name}": text for name, text in reference.pages().items()}
    return copied | made | {"gallery.md": gallery.page()}


def written(file: Path, run: bool) -> str:
    """A document in Markdown."""
    return notebook.page(file, run) if file.suffix == ".ipynb" else file.read_text("utf-8")


def documents() -> dict[str, str]:
    """The documents, from files of the repository to those of the site."""
    below = sorted([*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")])
    pages = {path: path.relative_to(DOCS).with_suffix(".md") for path in below}
    return {**ABOVE} | {str(path.relative_to(ROOT)): str(name) for path, name in pages.items()}


def pictures() -> dict[str, str]:
    """The pictures of documents and gallery, from files of the repository to those of the site."""
    own = sorted((DOCS / "figures").glob("*.png"))
    return {str(p.relative_to(ROOT)): str(p.relative_to(DOCS)) for p in own} | gallery.pictures()


def settings(pages: Iterable[str]) -> str:
    """The settings with all pages of the reference, and with those that they do not place."""
    text = SETTINGS.read_text(encoding="utf-8")
    placed = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text, re.MULTILINE)
    left = [page for page in pages if page not in placed]
    index = "      - reference/index.md\n"
    about = "".join(f"      - {page}\n" for page in left if page.startswith("reference/"))
    others = "".join(f"      - {page}\n" for page in left if not page.startswith("reference/"))
    return text.replace(index, index + about) + (f"  - More:\n{others}" if others else "")
