"""What a model said becomes columns: exact, refused when broken, the same however it was cut."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from narrowing import there
from ova.errors import BadInput
from ova.metrics import METRICS
from ova.predictions import COLUMNS, Predictions, merge, read, read_chunks, write, writer

TYPES = (np.float32, np.float64)


def rows_of_probs(n, K, normalised, seed=0, scale=3.0):
    r = np.random.default_rng(seed)
    z = r.normal(size=(n, K)) * scale
    if normalised:
        p = np.exp(z - z.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
    else:
        p = 1 / (1 + np.exp(-z))
    return z, p, r.integers(-1, K, n)


def slow(p, y, normalised):
    """The columns of one row, in plain Python and in the order of the formulas."""
    p = [float(v) for v in p]
    no = [math.log1p(-v) if v < 1 else -math.inf for v in p]
    yes = [math.log(v) if v > 0 else -math.inf for v in p]
    entropy = -sum(v * a for v, a in zip(p, yes, strict=True) if v > 0)
    if not normalised:
        entropy -= sum((1 - v) * a for v, a in zip(p, no, strict=True) if v < 1)
    squares = sum((v - (k == y)) ** 2 for k, v in enumerate(p))
    return {
        "prediction": p.index(max(p)),
        "confidence": max(p),
        "log_p": yes[y] if y >= 0 else math.nan,
        "log_none": sum(no),
        "log_answers": sum(a for k, a in enumerate(no) if k != y) + (yes[y] if y >= 0 else 0),
        "squared_error": math.nan if normalised and y < 0 else squares,
        "entropy": entropy,
    }


def same(a, b):
    assert (a.classes, a.normalised) == (b.classes, b.normalised)
    for name in COLUMNS:
        x, y = getattr(a, name), getattr(b, name)
        if x is None or y is None:
            assert x is y, name
        else:
            assert x.dtype == y.dtype, name
            np.testing.assert_array_equal(x, y, err_msg=name)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("K", [1, 2, 10, 33, 257])
def test_columns_of_probabilities_are_those_of_the_formulas(dtype, normalised, K):
    _, p, y = rows_of_probs(60, K, normalised, scale=5.0)
    p = p.astype(dtype)
    said = Predictions.from_probs(p, y, normalised=normalised)
    tolerance = 2e-6 if dtype == np.float32 else 1e-12
    for i in range(len(p)):
        for name, value in slow(p[i], y[i], normalised).items():
            column = getattr(said, name)
            if column is not None:
                assert column[i] == pytest.approx(value, rel=tolerance, abs=tolerance, nan_ok=True)
    assert (said.log_answers is None) == normalised


@pytest.mark.parametrize("normalised", [True, False])
def test_columns_of_logits_are_those_of_their_probabilities(normalised):
    z, p, y = rows_of_probs(200, 7, normalised)
    said = Predictions.from_logits(z, np.log(p), y, normalised=normalised, keep_probs=True)
    from_p = Predictions.from_probs(p, y, normalised=normalised, keep_probs=True)
    for name in COLUMNS:
        if getattr(from_p, name) is not None:
            np.testing.assert_allclose(getattr(said, name), getattr(from_p, name), atol=1e-12)
    np.testing.assert_allclose(there(said.energy), np.log(np.exp(z).sum(1)))
    np.testing.assert_array_equal(said.max_logit, z.max(1))


def test_logits_keep_what_probabilities_lose():
    z = np.array([[40.0, -40.0], [45.0, -45.0]], np.float32)
    log_p = -np.logaddexp(0, -z.astype(np.float64))
    said = Predictions.from_logits(z, log_p, [0, 0], normalised=False)
    assert (said.confidence == 1).all()  # saturated: the confidence has lost the order
    np.testing.assert_allclose(there(said.log_none), [-40, -45], rtol=1e-12)
    sure = np.array([-2 * math.exp(-40), -2 * math.exp(-45)])
    np.testing.assert_allclose(there(said.log_answers), sure)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("p", [1e-30, 1e-12, 1e-5, 0.0009, 0.0011, 0.0624, 0.12499, 0.125, 0.7])
def test_small_probabilities_are_not_rounded_away_in_one_minus_p(p, dtype):
    p = np.full((1, 1000), p, dtype)
    said = Predictions.from_probs(p, [-1], normalised=False)
    expected = 1000 * math.log1p(-float(p[0, 0]))
    assert there(said.log_none)[0] == pytest.approx(expected, rel=3e-7)
    entropy = slow(p[0], -1, False)["entropy"]
    assert there(said.entropy)[0] == pytest.approx(entropy, rel=2e-6)


@pytest.mark.parametrize("dtype", TYPES)
def test_the_product_over_many_sure_classes_does_not_vanish(dtype):
    p = np.full((1, 1000), 0.999, dtype)
    said = Predictions.from_probs(p, [3], normalised=False)
    no = math.log1p(-float(p[0, 0]))
    assert there(said.log_none)[0] == pytest.approx(1000 * no, rel=1e-6)
    assert there(said.log_answers)[0] == pytest.approx(999 * no + math.log(p[0, 0]), rel=1e-6)


def test_certainty_is_infinite_only_where_it_is_wrong():
    p = np.array([[1.0, 0.0], [1.0, 0.0]], np.float32)
    said = Predictions.from_probs(p, [0, 1], normalised=False)
    assert there(said.log_answers).tolist() == [0, -math.inf]
    assert there(said.log_p).tolist() == [0, -math.inf]
    assert there(said.entropy).tolist() == [0, 0]
    assert there(said.squared_error).tolist() == [0, 2]


def test_equal_probabilities_are_answered_with_the_first():
    p = np.full((1, 100), 0.01, np.float32)
    assert Predictions.from_probs(p, [5], normalised=True).prediction[0] == 0


@pytest.mark.parametrize("dtype", TYPES)
def test_minus_zero_is_zero(dtype):
    p = np.array([[-0.0, 1.0]], dtype)
    said = Predictions.from_probs(p, [1], normalised=True)
    error, entropy = there(said.squared_error), there(said.entropy)
    assert (error[0], entropy[0], said.prediction[0]) == (0, 0, 1)
    with pytest.raises(BadInput, match=r"class 1 is -0\.5"):
        Predictions.from_probs(np.array([[-0.0, -0.5, 1.0]], dtype), [1], normalised=True)


BROKEN: dict[str, tuple[Any, Any, str]] = {
    "NaN": ([[0.5, 0.5], [math.nan, 1]], [0, 0], "row 1: the probability of class 0 is NaN"),
    "above": ([[0.5, 0.5], [0.1, 1.5]], [0, 0], r"row 1: .* class 1 is 1.5, outside \[0, 1\]"),
    "below": ([[-0.1, 1.0]], [0], r"row 0: .* class 0 is -0.1, outside \[0, 1\]"),
    "infinite": ([[0.0, math.inf]], [0], r"row 0: .* class 1 is inf, outside \[0, 1\]"),
    "logits": ([[3.2, -1.0]], [0], "row 0: .*logits must become probabilities first"),
    "sum": ([[0.5, 0.5], [0.5, 0.2]], [0, 0], "row 1: the probabilities sum to 0.7, not 1"),
    "label": ([[0.5, 0.5]] * 2, [0, 2], "row 1: target 2 lies outside 0..1"),
    "negative": ([[0.5, 0.5]], [-2], "row 0: target -2 lies outside 0..1"),
    "half": ([[0.5, 0.5]], [0.5], "row 0: target must be a whole number, not 0.5"),
    "no label": ([[0.5, 0.5]], [math.nan], "row 0: target must be a whole number, not nan"),
    "words": ([[0.5, 0.5]], ["cat"], "target must be whole numbers"),
    "vector": ([0.5, 0.5], [0], r"matrix of N rows and K classes, not of shape \(2,\)"),
    "lengths": ([[0.5, 0.5]], [0, 1], "target has shape .2,., but there are 1 rows"),
    "no class": (np.empty((2, 0)), [0, 0], "matrix of N rows and K classes"),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("case", BROKEN)
def test_broken_input_is_refused_with_its_row_and_rule(case, dtype):
    p, y, message = BROKEN[case]
    with pytest.raises(BadInput, match=message):
        Predictions.from_probs(np.asarray(p, dtype), y, normalised=True)


def test_the_first_broken_row_is_named_in_a_large_matrix():
    p = np.full((200_000, 10), 0.1, np.float32)
    p[[150_000, 170_000], 3] = 2
    with pytest.raises(BadInput, match="row 150000: "):
        Predictions.from_probs(p, np.zeros(len(p), int), normalised=True)


@pytest.mark.parametrize(
    ("z", "log_p", "message"),
    [
        ([[math.nan, 0.0]], [[-0.7, -0.7]], "row 0: .*NaN"),
        ([[0.0, 0.0]], [[-0.7, math.nan]], "row 0: .*NaN"),
        ([[0.0, 0.0]], [[0.3, -0.7]], "row 0: log-probability 0.3 is above 0"),
        ([[0.0, 0.0]], [[-2.0, -2.0]], "row 0: the probabilities sum to 0.270671, not 1"),
        ([[0.0, 0.0, 0.0]], [[-0.7, -0.7]], "logits are"),
    ],
)
def test_broken_logits_are_refused(z, log_p, message):
    with pytest.raises(BadInput, match=message):
        Predictions.from_logits(z, log_p, [0], normalised=True)


@pytest.mark.parametrize("normalised", [True, False])
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_cutting_and_merging_changes_no_value(normalised, data, tmp_path_factory):
    """Any cut, any order, through memory or files: the same columns and metrics, bit for bit."""
    n = data.draw(st.integers(1, 60))
    _, p, y = rows_of_probs(n, 4, normalised, seed=data.draw(st.integers(0, 9)))
    p, y = p.astype(data.draw(st.sampled_from(TYPES))), np.abs(y)
    whole = Predictions.from_probs(p, y, normalised=normalised, keep_probs=True)
    order = np.array(data.draw(st.permutations(range(n))))
    cuts = sorted(data.draw(st.lists(st.integers(0, n), max_size=4)))
    pieces = [order[a:b] for a, b in pairwise([0, *cuts, n])]
    parts = [
        Predictions.from_probs(p[i], y[i], id=i, normalised=normalised, keep_probs=True)
        for i in pieces
    ]
    if data.draw(st.booleans()):
        folder = tmp_path_factory.mktemp("parts")
        for i, part in enumerate(parts):
            write(folder / f"{i}.parquet", part)
        parts = [read(folder / f"{i}.parquet") for i in range(len(parts))]
    merged = merge(parts, total=n)
    same(merged, whole)
    for name, metric in METRICS.items():
        assert metric(merged) == metric(whole), name


def some(n=4):
    _, p, y = rows_of_probs(n, 3, True)
    return Predictions.from_probs(p, np.abs(y), normalised=True)


def test_merging_finds_what_is_twice_lost_or_strange():
    said = some()
    with pytest.raises(BadInput, match="id 1 comes more than once"):
        merge([said, said.take([1])])
    with pytest.raises(BadInput, match="1 of 4 examples are lost, the first has id 2"):
        merge([said.take([0, 1]), said.take([3])], total=4)
    with pytest.raises(BadInput, match=r"id 3 lies outside 0\.\.2"):
        merge([said], total=3)
    with pytest.raises(BadInput, match="no parts"):
        merge([])


def test_merging_refuses_parts_of_different_kinds():
    said = some()
    z = np.zeros((1, 3))
    with_logits = Predictions.from_logits(z, np.log(z + 1 / 3), [0], id=[9], normalised=True)
    with pytest.raises(BadInput, match="max_logit"):
        merge([said, with_logits])
    other = Predictions.from_probs([[0.5, 0.5]], [0], id=[9], normalised=True)
    with pytest.raises(BadInput, match="part 1 has 2 classes"):
        merge([said, other])


def test_columns_of_unequal_length_are_refused():
    with pytest.raises(BadInput, match="target has 2 rows, id has 1"):
        Predictions(
            id=np.zeros(1, int),
            target=np.zeros(2, int),
            prediction=np.zeros(1, int),
            confidence=np.zeros(1),
            classes=2,
            normalised=True,
        )


@pytest.mark.parametrize("normalised", [True, False])
def test_a_file_gives_back_what_was_written(tmp_path, normalised):
    z, p, y = rows_of_probs(500, 6, normalised)
    said = Predictions.from_logits(z, np.log(p), y, normalised=normalised, keep_probs=True)
    path = tmp_path / "deep" / "test.parquet"
    with writer(path) as add:
        for start in range(0, 500, 128):
            add(said.take(slice(start, start + 128)))
    same(read(path), said)
    same(merge(list(read_chunks(path))), said)
    assert read(path, probs=False).probs is None


def test_other_programs_read_the_file(tmp_path):
    _, p, y = rows_of_probs(50, 6, False)
    said = Predictions.from_probs(p, y, normalised=False, keep_probs=True)
    path = tmp_path / "test.parquet"
    write(path, said)
    for table in (
        pd.read_parquet(path),
        pl.read_parquet(path).to_pandas(),
        there(duckdb.sql(f"select * from '{path}'")).df(),
    ):
        np.testing.assert_array_equal(table["confidence"], said.confidence)
        np.testing.assert_array_equal(table["target"], said.target)
        np.testing.assert_array_equal(np.stack(table["probs"].to_list()), said.probs)


def write_then(path, batches, error=None):
    with writer(path) as add:
        for batch in batches:
            add(batch)
        if error:
            raise error


def test_a_file_is_whole_or_absent(tmp_path):
    path = tmp_path / "test.parquet"
    with pytest.raises(RuntimeError, match="power"):
        write_then(path, [some()], RuntimeError("power cut"))
    other = Predictions.from_probs([[0.5, 0.5]], [0], normalised=True)
    with pytest.raises(BadInput, match="differs from the first"):
        write_then(path, [some(), other])
    with pytest.raises(BadInput, match="no predictions were given"):
        write_then(path, [])
    assert list(tmp_path.iterdir()) == []


def test_a_failed_rewrite_leaves_the_old_file(tmp_path):
    path = tmp_path / "test.parquet"
    write(path, some())
    with pytest.raises(RuntimeError, match="power"):
        write_then(path, [some(2)], RuntimeError("power cut"))
    same(read(path), some())


@pytest.mark.parametrize("content", [b"", b"PAR1", b"nonsense" * 50])
def test_a_broken_file_is_named(tmp_path: Path, content):
    path = tmp_path / "test.parquet"
    path.write_bytes(content)
    with pytest.raises(BadInput, match=r"test\.parquet: damaged, or not a whole Parquet file"):
        read(path)
    with pytest.raises(BadInput, match="there is no file"):
        read(tmp_path / "absent.parquet")


def test_a_foreign_file_is_not_taken_for_ours(tmp_path):
    path = tmp_path / "test.parquet"
    pd.DataFrame({"id": [0], "target": [0], "prediction": [0], "confidence": [1.0]}).to_parquet(
        path
    )
    with pytest.raises(BadInput, match="not written by ova"):
        read(path)


def test_chunks_of_a_wide_file_stay_small(tmp_path):
    path = tmp_path / "wide.parquet"
    p = np.full((40_000, 1000), 0.001, np.float32)
    with writer(path) as add:
        for start in range(0, len(p), 10_000):
            ids = np.arange(start, start + 10_000)
            part = p[start : start + 10_000]
            add(
                Predictions.from_probs(
                    part, np.zeros(10_000, int), id=ids, normalised=True, keep_probs=True
                )
            )
    sizes = [there(chunk.probs).size for chunk in read_chunks(path)]
    assert max(sizes) <= 1 << 24
    assert sum(sizes) == p.size
