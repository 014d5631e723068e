"""Every Python block of the tutorials and of six other pages runs; tutorials import public names alone."""

import ast
import re
from pathlib import Path

import pytest

import ova

DOCS = Path(__file__).resolve().parents[1] / "docs"
OTHER = [
    DOCS / f"{name}.md"
    for name in ("calibration", "coming-from", "metrics", "monitor", "sets", "threshold")
]
PAGES = [*OTHER, *sorted((DOCS / "tutorials").glob("*.md"))]
TUTORIALS = [
    page for page in PAGES if page.parent.name == "tutorials" or page.stem == "coming-from"
]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def code(page: Path) -> str:
    """The blocks of a page as one program whose lines keep their numbers."""
    text = page.read_text(encoding="utf-8")
    lines = [""] * (text.count("\n") + 1)
    for block in BLOCK.finditer(text):
        first = text[: block.start(1)].count("\n")
        body = block.group(1).splitlines()
        lines[first : first + len(body)] = body
    return "\n".join(lines)


SLOW = ("none", "sentences", "table")  # train for many seconds


@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow if p.stem in SLOW else ()) for p in PAGES],
    ids=lambda page: page.stem,
)
def test_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    program = code(page)
    assert program.strip(), "no Python block"
    if "OVA_DATA" in program:
        monkeypatch.setenv("OVA_DATA", str(request.getfixturevalue("data_dir")))
    monkeypatch.chdir(tmp_path)
    exec(compile(program, str(page), "exec"), {"__name__": "__main__"})


ANY = re.compile(r"^```py(?:thon)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)  # also what does not run
INTERNAL = re.compile(r"\b(?:from|import)\s+ova\.")


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_imports_public_names_alone(page: Path) -> None:
    """Nothing below `ova`, and of it what `ova.__all__` has, in blocks that run and in others."""
    text = page.read_text(encoding="utf-8")
    assert not INTERNAL.search("".join(block.group(1) for block in ANY.finditer(text)))
    used = set()
    for node in ast.walk(ast.parse(code(page))):
        if isinstance(node, ast.ImportFrom) and node.module == "ova":
            used |= {alias.name for alias in node.names}
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used |= {node.attr} if node.value.id == "ova" else set()
    assert used <= set(ova.__all__)
    assert used, "no name of ova"
