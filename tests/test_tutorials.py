"""Every Python block of the tutorials and of three other pages runs, top to bottom."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = [
    *(DOCS / f"{name}.md" for name in ("calibration", "sets", "threshold")),
    *sorted((DOCS / "tutorials").glob("*.md")),
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


SLOW = ("sentences", "table")  # train for many seconds


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
