"""The wrong lines that mutation testing puts in: each is one small change, and no test is asked for words."""

from pathlib import Path

import pytest
from mutants.__main__ import _Loader
from mutants.operators import mutants
from mutants.reach import Reach

SOURCE = '''
def within(x: int | None, low: float = 0.5, *, dim: int = -1) -> bool:
    """True when x is 3 or less."""
    if x is None or not low:
        raise ValueError(f"{x + 1} is none")
    check(x)
    return low <= x.sum(dim=-1, where=True) - 2 and x.shape[-1] > 0
'''


def test_every_wrong_line_is_one_change_of_one_line():
    found = mutants(SOURCE)
    assert len({mutant.source for mutant in found}) == len(found)
    for mutant in found:
        before, after = SOURCE.splitlines(), mutant.source.splitlines()
        changed = [
            n for n, pair in enumerate(zip(before, after, strict=True), 1) if len({*pair}) > 1
        ]
        assert changed == [mutant.line]
        assert mutant.before == before[mutant.line - 1].strip()
        assert mutant.after == after[mutant.line - 1].strip()


@pytest.mark.parametrize(
    ("line", "after"),
    [
        (2, "def within(x: int | None, low: float = 0.525, *, dim: int = -1) -> bool:"),
        (4, "if x is not None or not low:"),
        (4, "if x is None and not low:"),
        (4, "if x is None or low:"),
        (5, "pass"),
        (6, "pass"),
        (7, "return low < x.sum(dim=-1, where=True) - 2 and x.shape[-1] > 0"),
        (7, "return low <= x.mean(dim=-1, where=True) - 2 and x.shape[-1] > 0"),
        (7, "return low <= x.sum(dim=-1, where=False) - 2 and x.shape[-1] > 0"),
        (7, "return low <= x.sum(dim=-1) - 2 and x.shape[-1] > 0"),
        (7, "return low <= x.sum(dim=-1, where=True) + 2 and x.shape[-1] > 0"),
        (7, "return low <= x.sum(dim=-1, where=True) - 3 and x.shape[-1] > 0"),
        (7, "return low <= x.sum(dim=-1, where=True) - 2 or x.shape[-1] > 0"),
        (7, "return low <= x.sum(dim=-1, where=True) - 2 and x.shape[-1] >= 0"),
    ],
)
def test_a_wrong_line(line, after):
    assert (line, after) in {(mutant.line, mutant.after) for mutant in mutants(SOURCE)}


def test_words_types_and_axes_stay():
    wrong = {mutant.after for mutant in mutants(SOURCE)}
    assert not any("x + 2" in line or "int & None" in line or "dim=1" in line for line in wrong)


def test_a_statement_over_several_lines_is_reached_by_any_of_them():
    source = "def f(a, b):\n    return g(\n        a,\n        b + 1,\n    )\n"
    plus = next(mutant for mutant in mutants(source) if "b - 1" in mutant.after)
    assert plus.line == 4
    assert plus.lines == range(2, 6)


def test_what_runs_at_import_is_reached_by_every_test_of_the_file():
    (mutant,) = mutants("LIMIT = 3\n")
    assert mutant.lines == range(0)


def test_whether_a_class_is_frozen_stays():
    source = '@dataclass(frozen=True)\nclass A(B):\n    """Words."""\n\n    x: float = 0.5\n'
    assert [mutant.after for mutant in mutants(source)] == ["x: float = 0.525"]


def test_what_nobody_saw_run_is_tried_on_every_test_of_its_file_the_quickest_first():
    file = Path("a.py")
    reach = Reach([file])
    reach.tests[file][3].add("slow")
    reach.tests[file][4].add("quick")
    reach.seconds = {"slow": 2.0, "quick": 1.0}
    assert reach.of(file, range(3, 4)) == ["slow"]
    assert reach.of(file, range(8, 9)) == reach.of(file, range(0)) == ["quick", "slow"]


def test_wrong_machine_code_is_neither_taken_from_the_cache_nor_kept_in_it():
    """Numba keeps it beside the file that the code says it is from, if there is one."""
    for source, kept in (("@compiled\ndef f(x):\n    return x\n", False), ("x = 1\n", True)):
        code = _Loader("module", __file__, source).get_code("module")
        assert Path(code.co_filename).exists() == kept
