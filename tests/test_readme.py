"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_code_block_runs_as_printed_and_shows_the_idea():
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    unknown = {line.split()[0]: float(line.split()[-1]) for line in done.stdout.splitlines()}
    assert list(unknown) == ["softmax", "ova", "ova-dm"]
    assert unknown["ova-dm"] < unknown["ova"] < unknown["softmax"]


def test_tables_and_tree_follow_from_the_repository():
    for name in ("make_readme.py", "make_choosing.py", "make_reproduction.py"):
        check = [sys.executable, str(ROOT / "docs" / name), "--check"]
        assert subprocess.run(check, check=False).returncode == 0, name


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_every_link_within_the_repository_leads_somewhere(link):
    if not link.startswith("http"):
        assert (ROOT / link).exists(), link
