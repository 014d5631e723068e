"""Predictions from anywhere: three formats say the same, and what breaks a rule is refused."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ova.errors import BadInput
from ova.predictions import COLUMNS, Predictions, Reading, formats, parquet, read_any, write


def probs(n=50, K=4, seed=0):
    r = np.random.default_rng(seed)
    return r.dirichlet(np.ones(K), n), r.integers(0, K, n)


def frame(p, **columns):
    return pd.DataFrame(p, columns=[f"p_{k}" for k in range(p.shape[1])]).assign(**columns)


def to_csv(path, p, **columns):
    frame(p, **columns).to_csv(path.with_suffix(".csv"), index=False)
    return path.with_suffix(".csv")


def to_columns(path, p, **columns):
    frame(p, **columns).to_parquet(path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def to_lists(path, p, **columns):
    table = pa.table({"probs": list(p), **columns})
    pq.write_table(table, path.with_name("lists.parquet"), row_group_size=7)
    return path.with_name("lists.parquet")


def to_npz(path, p, **columns):
    np.savez(path.with_suffix(".npz"), probs=p, **columns)
    return path.with_suffix(".npz")


def to_compressed(path, p, **columns):
    np.savez_compressed(path.with_name("small.npz"), probabilities=np.asfortranarray(p), **columns)
    return path.with_name("small.npz")


def to_json_lines(path, p, **columns):
    rows = frame(p, **columns).to_dict("records")
    # NaN is no JSON: a number that is missing is null.
    lines = (json.dumps({k: None if pd.isna(v) else v for k, v in row.items()}) for row in rows)
    path.with_suffix(".jsonl").write_text("".join(f"{line}\n" for line in lines))
    return path.with_suffix(".jsonl")


def to_lists_in_lines(path, p, **columns):
    rows = pd.DataFrame(columns, index=range(len(p))).to_dict("records")
    lines = (json.dumps(row | {"probs": q.tolist()}) for row, q in zip(rows, p, strict=True))
    path.with_suffix(".ndjson").write_text("\n".join(lines))
    return path.with_suffix(".ndjson")


def to_feather(path, p, **columns):
    frame(p, **columns).to_feather(path.with_suffix(".feather"))
    return path.with_suffix(".feather")


def to_stream(path, p, **columns):
    table = pa.table({"probs": list(p), **columns})
    with pa.ipc.new_stream(path.with_suffix(".arrow"), table.schema) as stream:
        stream.write_table(table, max_chunksize=7)
    return path.with_suffix(".arrow")


TABLES = (to_csv, to_columns, to_lists, to_npz, to_compressed)
LINES = (to_json_lines, to_lists_in_lines, to_feather, to_stream)
WRITERS = {f.__name__: f for f in (*TABLES, *LINES)}


def same(a, b):
    for name in COLUMNS:
        x, y = getattr(a, name), getattr(b, name)
        if x is None or y is None:
            assert x is y, name
        else:
            np.testing.assert_array_equal(x, y, err_msg=name)


@pytest.mark.parametrize("save", WRITERS.values(), ids=WRITERS)
def test_every_format_gives_the_same_columns(tmp_path, save):
    p, y = probs()
    expected = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
    same(read_any(save(tmp_path / "a", p, target=y)), expected)


@pytest.mark.parametrize("save", WRITERS.values(), ids=WRITERS)
def test_small_chunks_change_nothing_and_errors_still_name_the_row(tmp_path, save, monkeypatch):
    monkeypatch.setattr(parquet, "CELLS", 16)
    p, y = probs()
    path = save(tmp_path / "a", p, target=y)
    same(read_any(path), Predictions.from_probs(p, y, normalised=True, keep_probs=True))
    p[37, 2] = 1.25
    with pytest.raises(
        BadInput, match=rf"{path.name}: row 37: .*class 2 is 1.25, outside \[0, 1\]"
    ):
        read_any(save(tmp_path / "a", p, target=y))
    p, y = probs()
    y[41] = 4
    with pytest.raises(BadInput, match="row 41: target 4 lies outside"):
        read_any(save(tmp_path / "a", p, target=y))


@pytest.mark.parametrize("save", WRITERS.values(), ids=WRITERS)
def test_ids_put_rows_in_order_and_may_not_repeat(tmp_path, save):
    p, y = probs()
    order = np.random.default_rng(1).permutation(50)
    expected = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
    same(read_any(save(tmp_path / "a", p[order], target=y[order], id=order)), expected)
    with pytest.raises(BadInput, match="id 7 comes more than once"):
        read_any(save(tmp_path / "a", p, target=y, id=np.full(50, 7)))


def test_names_of_files_are_no_ids(tmp_path):
    p, y = probs()
    names = np.array([f"{i}.png" for i in range(50)])
    for save in (to_csv, to_columns, to_npz):
        assert read_any(save(tmp_path / "a", p, target=y, id=names)).id.tolist() == list(range(50))


def test_a_matrix_too_large_to_keep_is_reduced_chunk_by_chunk(tmp_path, monkeypatch):
    from ova.predictions import foreign

    monkeypatch.setattr(foreign, "KEEP", 100)
    monkeypatch.setattr(parquet, "CELLS", 40)
    p, y = probs()
    same(
        read_any(to_npz(tmp_path / "a", p, target=y)), Predictions.from_probs(p, y, normalised=True)
    )


def three(n=30):
    p, y = probs(n)
    return {"confidence": p.max(1), "prediction": p.argmax(1), "target": y}


def save_lines(table, path):
    rows = (
        {k: None if pd.isna(v) else v for k, v in row.items()} for row in table.to_dict("records")
    )
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))


SAVERS = {
    ".csv": lambda table, path: table.to_csv(path, index=False),
    ".parquet": lambda table, path: table.to_parquet(path),
    ".jsonl": save_lines,
    ".ndjson": save_lines,
    ".arrow": lambda table, path: table.to_feather(path),
    ".feather": lambda table, path: table.to_feather(path, compression="uncompressed"),
}


def save_three(path, kind, columns):
    path = path.with_suffix(kind)
    if kind == ".npz":
        np.savez(path, **columns)
    else:
        table = pd.DataFrame({k: pd.Series(v) for k, v in columns.items()})
        SAVERS[kind](table, path)
    return path


@pytest.mark.parametrize("kind", formats.FORMATS)
def test_three_columns_are_enough(tmp_path, kind):
    said = read_any(save_three(tmp_path / "a", kind, three()))
    for name, column in three().items():
        np.testing.assert_array_equal(getattr(said, name), column)
    assert (said.log_p, said.probs, said.classes) == (None, None, None)


BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "above": ({"confidence": [0.5, 3.5]}, r"row 1: confidence 3.5 lies outside \[0, 1\]"),
    "NaN": ({"confidence": [0.5, np.nan]}, "row 1: confidence nan is NaN"),
    "label": ({"target": [0, -3]}, "row 1: target -3 lies outside"),
    "none": ({"target": [0, -1]}, "row 1: target -1 lies outside"),
    "half": ({"target": [0, 0.5]}, "row 1: target must be a whole number, not 0.5"),
    "prediction": ({"prediction": [-1, 0]}, "row 0: prediction -1 lies outside"),
    "empty": (
        {"confidence": np.zeros(0), "prediction": np.zeros(0), "target": np.zeros(0)},
        "the file has no rows",
    ),
}


@pytest.mark.parametrize("kind", formats.FORMATS)
@pytest.mark.parametrize("case", BROKEN)
def test_broken_columns_are_refused_with_their_row_and_rule(tmp_path, kind, case):
    columns, message = BROKEN[case]
    good = {"confidence": [0.5, 0.6], "prediction": [0, 1], "target": [0, 1]}
    path = save_three(tmp_path / "a", kind, good | columns)
    with pytest.raises(BadInput, match=f"{path.name}: {message}"):
        read_any(path)


@pytest.mark.parametrize("kind", formats.FORMATS)
def test_missing_columns_are_named(tmp_path, kind):
    for columns, message in (
        ({"confidence": [0.5], "target": [0]}, "found confidence, target; expected `target` with"),
        ({"confidence": [0.5], "prediction": [0]}, "there is no target"),
        ({"logits": [0.5], "target": [0]}, "logits are not probabilities"),
        ({"p_0": [0.5], "p_2": [0.5], "target": [0]}, r"numbered 0\.\.K-1, not \[0, 2\]"),
    ):
        with pytest.raises(BadInput, match=message):
            read_any(save_three(tmp_path / "a", kind, columns))


def test_lengths_and_shapes_must_fit(tmp_path):
    p, y = probs(5)
    with pytest.raises(BadInput, match=r"target has shape \(4,\), but probs has 5 rows"):
        read_any(to_npz(tmp_path / "a", p, target=y[:4]))
    with pytest.raises(BadInput, match="matrix of N rows and K classes"):
        read_any(to_npz(tmp_path / "a", p[0], target=y))
    with pytest.raises(BadInput, match="different lengths"):
        read_any(save_three(tmp_path / "a", ".npz", three() | {"confidence": [0.5]}))
    ragged = pa.table({"probs": [[0.5, 0.5], [1.0]], "target": [0, 0]})
    pq.write_table(ragged, tmp_path / "ragged.parquet")
    with pytest.raises(BadInput, match="probs has 1 numbers, not 2"):
        read_any(tmp_path / "ragged.parquet")


def test_a_row_of_csv_that_is_not_numbers_is_refused(tmp_path):
    path = tmp_path / "a.csv"
    for text, message in (
        ("p_0,p_1,target\n0.5,0.5,0\n0.5,cat,0\n", "not a CSV file of numbers.*cat"),
        ("p_0,p_1,target\n0.5,0.5\n", "not a CSV file of numbers"),
        ("p_0,p_1,target\n", "no rows"),
        ("p_0,p_1,target\n0.5,,0\n", "row 0: the probability of class 1 is NaN"),
        ("", "found nothing"),
    ):
        path.write_text(text)
        with pytest.raises(BadInput, match=message):
            read_any(path)


def test_a_csv_of_pandas_with_its_index_and_a_mark_of_byte_order_is_read(tmp_path):
    p, y = probs()
    frame(p, target=y.astype(float)).to_csv(tmp_path / "a.csv", encoding="utf-8-sig")
    assert read_any(tmp_path / "a.csv").target.tolist() == y.tolist()


def test_nothing_is_unpickled(tmp_path):
    np.savez(tmp_path / "a.npz", probs=np.array([[{}]], object), target=[0])
    with pytest.raises(BadInput, match="Python objects"):
        read_any(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", probs=np.ones((1, 1)), target=np.array([{}], object))
    with pytest.raises(BadInput, match="target holds Python objects"):
        read_any(tmp_path / "b.npz")


def test_broken_and_unknown_files_are_named(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"nonsense")
    with pytest.raises(BadInput, match=r"a\.npz: damaged, or not an \.npz file"):
        read_any(tmp_path / "a.npz")
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(BadInput, match=r"no file format called '\.txt'"):
        read_any(tmp_path / "a.txt")
    with pytest.raises(BadInput, match="there is no file"):
        read_any(tmp_path / "b.csv")


def test_one_vs_all_probabilities_must_be_declared(tmp_path):
    p, y = probs()
    path = to_npz(tmp_path / "a", p * 0.5, target=y)
    with pytest.raises(BadInput, match=r"row 0: the probabilities sum to 0\.5, not 1"):
        read_any(path)
    assert read_any(path, Reading(normalised=False)).normalised is False


@pytest.mark.parametrize("save", WRITERS.values(), ids=WRITERS)
def test_targets_of_examples_outside_are_not_read(tmp_path, save):
    p, _ = probs()
    words = np.array(["owl"] * 50)
    for path in (save(tmp_path / "a", p, target=words), save(tmp_path / "a", p)):
        assert (read_any(path, Reading(outside=True)).target == -1).all()


def test_our_own_files_are_read_and_checked(tmp_path):
    p, y = probs()
    said = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
    path = tmp_path / "test.parquet"
    write(path, said)
    same(read_any(path), said)
    strange = read_any(path, Reading(outside=True))
    assert (strange.target == -1).all()
    assert strange.log_p is None
    write(path, Predictions(**(vars(said) | {"confidence": said.confidence + 1})))
    with pytest.raises(BadInput, match="row 0: confidence"):
        read_any(path)
