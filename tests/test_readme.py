"""What the README shows is what happens."""

import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ova.training.run_folder import Run

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_code_block_runs_as_printed_and_shows_the_idea():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unknown = {line.split()[0]: float(line.split()[-1]) for line in done.stdout.splitlines()}
    assert list(unknown) == ["softmax", "ova", "ova-dm"]
    assert unknown["ova-dm"] < unknown["ova"] < unknown["softmax"]


def test_the_readme_is_short():
    assert README.count("\n") <= 130


def make_docs(root: Path) -> subprocess.CompletedProcess:
    """Check the written parts of the pages below a folder."""
    check = [sys.executable, str(root / "docs" / "make_docs.py"), "--check"]
    return subprocess.run(check, capture_output=True, text=True, check=False)


@pytest.mark.slow  # `make lint` looks too
def test_tables_and_tree_follow_from_the_repository():
    done = make_docs(ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_number_that_was_changed_and_a_place_that_is_gone_are_found(tmp_path):
    for name in ("results", "src"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("figures"))
    (tmp_path / "README.md").write_text(README, encoding="utf-8")
    page = tmp_path / "docs" / "results.md"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("0.816", "0.916"), encoding="utf-8")
    assert "docs/results.md; run: make readme" in make_docs(tmp_path).stderr
    page.write_text(text.replace("<!-- paper -->", ""), encoding="utf-8")
    assert "<!-- paper -->" in make_docs(tmp_path).stderr


def test_a_cell_has_the_t_interval_over_seeds_and_one_seed_has_none():
    page = runpy.run_path(str(ROOT / "docs" / "committed.py"))
    rows = [[{"dataset": "test", "metric": "ece", "value": value}] for value in (0.1, 0.2, 0.3)]
    seeds = [Run("e", str(i), "ova", i, measurements=row) for i, row in enumerate(rows)]
    half = 4.302653 * 0.1 / 3**0.5  # t of two degrees of freedom, times s / sqrt(n)
    assert page["cell"](seeds, page["on"]("ece", "test")) == f"0.200 ± {half:.3f}"
    assert page["cell"](seeds[:1], page["on"]("ece", "test")) == "0.100"
    assert page["cell"]([], page["on"]("ece", "test")) == "-"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_within_the_repository_leads_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for link, _, anchor in (link.partition("#") for link in re.findall(r"\]\(([^)\s]+)\)", text)):
        if not link.startswith("http"):
            target = page.parent / link if link else page
            assert target.exists(), link
            assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


def anchors(page: Path) -> set[str]:
    """What the headings of a page are called in links."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
