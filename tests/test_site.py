"""The documentation as a site: built strictly, whole, the same as on a code host, and quiet in a browser from disk."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pytest

import find_chromium
import ova

pytest.importorskip("zensical", reason="the site needs Zensical, of the extra dev")
from docs import site as site_builder
from docs.site import examples, notebook, staged
from docs.site.places import DOCS, HERE, ROOT

pytestmark = pytest.mark.slow
ARTEFACTS = ROOT / "artefacts"
SHOWN = (
    "h1",
    "h2",
    "h3",
    "h4",
    "table",
    "tr",
    "td",
    "th",
    "ul",
    "ol",
    "li",
    "pre",
    "img",
    "blockquote",
)


def make_site(root: Path, folder: Path) -> subprocess.CompletedProcess:
    """Build the site of a repository into a folder."""
    command = [sys.executable, "-m", "docs.site", str(folder)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    done = make_site(ROOT, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


class Seen(HTMLParser):
    """What a page has: elements of its article, anchors, and where it leads."""

    def __init__(self, text: str, whole: bool = False) -> None:
        super().__init__()
        self.elements: Counter[str] = Counter()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.inside = whole
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.inside |= tag == "article"
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links += [given[name] for name in ("href", "src") if name in given]
        if self.inside:
            self.elements[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        self.inside &= tag != "article"


def read(site: Path) -> dict[Path, Seen]:
    """Every page of the site, but the one for addresses that are not there."""
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    return {path: Seen(path.read_text(encoding="utf-8")) for path in pages}


def test_every_link_and_picture_is_there(site):
    pages = read(site)
    checked = 0
    for page, seen in pages.items():
        for link in seen.links:
            parts = urlsplit(link)
            if parts.scheme in {"https", "http"}:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.exists(), f"{page.name}: {link}"
            if parts.fragment and target in pages:
                anchors = pages[target].anchors | {"__codelineno"}
                assert unquote(parts.fragment) in anchors, f"{page.name}: {link}"
            checked += 1
    assert checked > 500


def test_every_document_is_a_page_that_the_first_page_leads_to(site):
    wanted = {str(path.relative_to(DOCS).with_suffix(".html")) for path in DOCS.rglob("*.md")}
    wanted |= {
        "tutorials/notebook.html",
        "contributing.html",
        "changelog.html",
        "gallery.html",
        "reference/index.html",
    }
    led = {unquote(urlsplit(link).path) for link in read(site)[site / "index.html"].links}
    assert {name.removeprefix("./") for name in led} >= wanted


def test_every_public_name_is_in_the_reference(site):
    there = {
        anchor
        for page, seen in read(site).items()
        if page.parent.name == "reference"
        for anchor in seen.anchors
    }
    named = {*ova.__all__} - {"metrics", "plot", "METRICS"}
    named |= {f"metrics.{name}" for name in ova.METRICS} | {"plot.reliability", "plot.landscape"}
    assert {f"ova.{name}" for name in named} <= there


def shown_by_a_code_host(text: str) -> Counter[str]:
    """The elements of a document by another parser, that of GitHub's Markdown."""
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").enable("table").render(text)
    return Seen(html, whole=True).elements


@pytest.mark.parametrize("path", sorted(DOCS.rglob("*.md")), ids=lambda path: path.stem)
def test_a_page_has_the_headings_tables_and_lists_that_a_code_host_shows(site, path):
    wanted = shown_by_a_code_host(path.read_text(encoding="utf-8"))
    page = site / path.relative_to(DOCS).with_suffix(".html")
    found = Seen(page.read_text(encoding="utf-8")).elements
    assert {tag: found[tag] for tag in SHOWN} == {tag: wanted[tag] for tag in SHOWN}


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path):
    for name in ("results", "src", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "CITATION.cff"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(DOCS, tmp_path / "docs", ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "docs" / "sets.md"
    text = page.read_text(encoding="utf-8")
    for wrong in (["no-such.md"], ["threshold.md#no-such-heading", "#not-here-either"]):
        links = "".join(f"\n[here]({link})\n" for link in wrong)
        page.write_text(f"{text}\n{links}", encoding="utf-8")
        done = make_site(tmp_path, tmp_path / "build")
        assert done.returncode != 0
        assert all(link.rpartition("#")[2] in done.stdout + done.stderr for link in wrong)


@pytest.mark.parametrize("module", [examples, staged], ids=lambda module: module.__name__)
def test_the_examples_of_the_builder_run(module):
    found = doctest.testmod(module)
    assert (found.failed, found.attempted > 0) == (0, True)


def test_a_wide_table_of_a_notebook_scrolls_and_looks_like_those_of_the_site():
    frame = pd.DataFrame(np.zeros((2, 40)))
    shown = notebook.shown({"text/html": frame.to_html(), "text/plain": str(frame)})
    assert shown.startswith('<div style="overflow-x: auto">\n<table><thead>')
    assert "\n\n" not in shown  # an empty line ends HTML in Markdown
    assert Seen(shown, whole=True).elements["td"] == 80


def test_the_builder_says_what_each_of_its_files_is():
    files = {path.name for path in HERE.iterdir() if path.is_file()} - {"__init__.py"}
    told = re.findall(r"^    (\w+\.\w+) +\S", site_builder.__doc__ or "", re.MULTILINE)
    assert sorted(told) == sorted(files)


@pytest.mark.browser
def test_every_page_opens_from_disk_without_a_word_or_a_request_and_the_search_finds(site):
    found = find_chromium.chromium()
    if found is None and os.environ.get("OVA_REQUIRE_BROWSER") == "1":
        pytest.fail(
            "OVA_REQUIRE_BROWSER=1, but there is no Chromium; python tests/find_chromium.py"
        )
    if found is None:
        pytest.skip("there is no Chromium on this machine; python tests/find_chromium.py gets one")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=find_chromium.QUIET)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        said: list[str] = []
        asked: list[str] = []
        page.on("console", lambda message: said.append(f"{page.url}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
        page.on("request", lambda request: asked.append(request.url))
        for path in read(site):
            page.goto(path.as_uri())
            page.wait_for_load_state("load")
        assert said == []
        assert {urlsplit(url).scheme for url in asked} <= {"file", "data", "blob", "about"}

        page.goto((site / "tutorials" / "table.html").as_uri())
        page.get_by_role("button", name="Search").first.click()
        page.get_by_placeholder("Search").last.fill("isotonic")
        result = page.wait_for_selector("a[href*='calibration']:has-text('isotonic')")
        ARTEFACTS.mkdir(exist_ok=True)
        page.screenshot(path=ARTEFACTS / "site-search.png")
        assert result is not None
        for name in ("index", "reference/train", "gallery"):
            page.goto((site / f"{name}.html").as_uri())
            page.screenshot(path=ARTEFACTS / f"site-{name.replace('/', '-')}.png")
        assert said == []
        browser.close()
