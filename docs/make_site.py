"""Build the documentation as a site that opens from disk: pages, tutorials and the reference, strictly.

python docs/make_site.py [FOLDER]   writes FOLDER/site/index.html; the folder is build/docs if none is named
python docs/make_site.py --run      runs the notebooks too, and shows what their cells show

The documents stay plain Markdown that any code host shows. They are copied into FOLDER/pages, where links to
files that are no pages become text, the reference is written from the docstrings, and Zensical makes
the site of them; a link or an anchor that leads nowhere ends it with an error.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import gallery
import notebook
import reference
from committed import ROOT
from staged import Document, on_the_site

DOCS = ROOT / "docs"
SETTINGS, EXAMPLES, OFFLINE = DOCS / "mkdocs.yml", DOCS / "examples.py", DOCS / "offline.js"
ABOVE = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}

COLOUR = re.compile(r"\x1b\[[0-9;]*m")  # of a terminal


def build(folder: Path, run: bool = False) -> Path:
    """The site below the folder; what an earlier build left there is gone."""
    for old in ("pages", "site"):
        shutil.rmtree(folder / old, ignore_errors=True)
    pages, texts = folder / "pages", every_page(run)
    for name, text in texts.items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        (pages / name).write_text(text, encoding="utf-8")
    for file, name in pictures().items():
        (pages / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / file, pages / name)
    shutil.copyfile(EXAMPLES, folder / EXAMPLES.name)
    (folder / SETTINGS.name).write_text(settings(texts), encoding="utf-8")
    zensical(folder)
    offline(folder / "site")
    return folder / "site"


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
    return ABOVE | {str(path.relative_to(ROOT)): str(name) for path, name in pages.items()}


def pictures() -> dict[str, str]:
    """The pictures of documents and gallery, from files of the repository to those of the site."""
    own = sorted((DOCS / "figures").glob("*.png"))
    return {str(p.relative_to(ROOT)): str(p.relative_to(DOCS)) for p in own} | gallery.pictures()


def settings(pages: Iterable[str]) -> str:
    """The settings with all pages of the reference, and with those that docs/mkdocs.yml does not place."""
    text = SETTINGS.read_text(encoding="utf-8")
    placed = re.findall(r"^ +- (?:\w+: )?(\S+\.md)$", text, re.MULTILINE)
    left = [page for page in pages if page not in placed]
    index = "      - reference/index.md\n"
    about = "".join(f"      - {page}\n" for page in left if page.startswith("reference/"))
    others = "".join(f"      - {page}\n" for page in left if not page.startswith("reference/"))
    return text.replace(index, index + about) + (f"  - More:\n{others}" if others else "")


def zensical(folder: Path) -> None:
    """Make the site of the pages; end with what was said if they are not in order."""
    source = os.pathsep.join(
        [str(ROOT / "src"), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    )
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean"],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": source},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode or not (folder / "site" / "index.html").exists():
        said = COLOUR.sub("", done.stdout + done.stderr).partition("Traceback")[0]
        sys.exit(f"{said or done.stderr}\nthe site was not built")


FETCHED = re.compile(r"""(?:src=|rel="?stylesheet"? href=)["']?(?P<url>https?://[^"' >]+)""")
SHIM = "https://unpkg.com/iframe-worker/shim"  # for the search from disk; ours needs no network


def offline(site: Path) -> None:
    """Put our script in the place of the one that would be fetched; nothing else may be fetched."""
    shutil.copyfile(OFFLINE, site / "assets" / OFFLINE.name)
    for page in sorted(site.rglob("*.html")):
        text = page.read_text(encoding="utf-8")
        up = "../" * (len(page.relative_to(site).parts) - 1)
        text = text.replace(SHIM, f"{up}assets/{OFFLINE.name}")
        if found := FETCHED.search(text):
            sys.exit(f"{page} would fetch {found['url']}; the site must open without a network")
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    named = [word for word in sys.argv[1:] if word != "--run"]
    place = Path(named[0]) if named else ROOT / "build" / "docs"
    made = build(place.resolve(), run="--run" in sys.argv)
    print(f"open {made / 'index.html'} in a browser")
