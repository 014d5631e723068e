"""Data in memory: every shape of the same rows is the same file, and what cannot be read has its sentence."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ova.errors import BadInput
from ova.files import sha256
from ova.userdata.given import in_python, unlabelled, written
from ova.userdata.rows import whole

TEXTS, LABELS = ["one fish", "two fish", None], ["a", "b", "a"]
COLUMNS = {"text": TEXTS, "label": LABELS}
SHAPES: dict[str, tuple[Any, Any]] = {
    "pandas": (pd.DataFrame(COLUMNS, index=[7, 7, 1]), None),
    "pandas, categorical": (pd.DataFrame(COLUMNS).astype({"label": "category"}), None),
    "polars": (pl.DataFrame(COLUMNS), None),
    "Arrow": (pa.table(COLUMNS), None),
    "Arrow, a batch": (pa.RecordBatch.from_pydict(COLUMNS), None),
    "Arrow, in chunks": (pa.concat_tables([pa.table(COLUMNS)[:1], pa.table(COLUMNS)[1:]]), None),
    "columns": (COLUMNS, None),
    "rows": ([{"text": t, "label": y} for t, y in zip(TEXTS, LABELS, strict=True)], None),
    "pairs": (list(zip(TEXTS, LABELS, strict=True)), None),
    "lists": (TEXTS, LABELS),
    "series": (pd.Series(TEXTS, dtype=object), pd.Series(LABELS)),
    "polars series": (pl.Series(TEXTS), pl.Series(LABELS)),
    "Arrow columns": (pa.chunked_array([TEXTS]), pa.array(LABELS)),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_the_same_rows_is_the_same_file(shape: str, tmp_path: Path) -> None:
    want = written(COLUMNS, None, ("text", "label"), tmp_path / "want.parquet").path
    data, labels = SHAPES[shape]
    found = written(data, labels, ("text", "label"), tmp_path / "found.parquet")
    assert whole(found.path).columns == COLUMNS
    assert sha256(found.path) == sha256(want)


def test_rows_of_numbers_are_columns(tmp_path: Path) -> None:
    x, y = np.array([[1.5, 2], [3, np.nan]]), np.array([4, 5])
    found = written(x, y, ("", ""), tmp_path / "f.parquet")
    columns = whole(found.path).columns
    assert (found.text, found.label, list(columns)) == ("", "label", ["x0", "x1", "label"])
    assert (columns["x0"], columns["label"]) == ([1.5, 3.0], [4, 5])
    pairs = [([1.5, 2], 4), ([3, float("nan")], 5)]
    again = written(pairs, None, ("", ""), tmp_path / "g.parquet")
    assert sha256(again.path) == sha256(found.path)


def test_a_path_stays_where_it_is(tmp_path: Path) -> None:
    for name in (tmp_path / "a.csv", str(tmp_path / "a.csv")):
        assert written(name, None, ("", ""), tmp_path / "no").path == tmp_path / "a.csv"
        assert unlabelled(name, "", tmp_path / "no") == tmp_path / "a.csv"
    assert not list(tmp_path.iterdir())


BAD: dict[str, tuple[Any, Any, str]] = {
    "no pairs": (["a", "b"], None, "row 1 is 'a', no pair"),
    "an empty list": ([], None, "no rows"),
    "too few labels": (["a", "b"], ["x"], "2 inputs and 1 labels"),
    "labels twice": (pd.DataFrame({"label": [1]}), [1], "there is a column 'label' too"),
    "labels of a file": ("a.csv", [1], "label= names it"),
    "a number": (3, None, "this is 3; wanted a list"),
    "a text as labels": (["a"], "x", "this is 'x'"),
    "mixed cells": (
        pd.DataFrame({"text": ["a", 3], "label": [1, 2]}),
        None,
        "one kind of value each",
    ),
    "mixed inputs": (["a", 3], [1, 2], "row 1 is a text and others are not"),
    "mixed labels": (["a", "b"], ["x", 2], "one kind of value each"),
    "ragged rows": ([[1], [1, 2]], [1, 2], "as many numbers"),
    "one column twice": (pd.DataFrame([[1, 2]], columns=["a", "a"]), None, "Duplicate column"),
    "columns of other lengths": ({"a": [1], "b": [1, 2]}, None, "one kind of value each"),
    "image files": ([Path("a.png")], ["x"], "images are trained on from a folder"),
    "a cube": (np.zeros((2, 2, 2)), [1, 2], "not of shape"),
    "lone surrogates": (["caf\udce9"], ["x"], "one kind of value each"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_read_has_its_sentence(name: str, tmp_path: Path) -> None:
    data, labels, said = BAD[name]
    with pytest.raises(BadInput, match=said) as error:
        written(data, labels, ("", ""), tmp_path / "f.parquet")
    assert "\n" not in str(error.value)
    assert str(tmp_path) not in str(error.value)


def test_options_are_keywords() -> None:
    said = "say --text 'a', else --drop 'a' or --skip-bad; with --members 5 it is --accuracy"
    want = "say text='a', else drop='a' or skip_bad=True; with members=5 it is accuracy="
    assert in_python(said, {}) == want
