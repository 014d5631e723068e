"""Features and logits from files of every format, as people and as OpenOOD write them."""

import io
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from made_outputs import network
from ova.errors import BadInput
from ova.predictions import Predictions, write
from ova.scores import Outputs
from ova.scores import reading as reading_module
from ova.scores.reading import read_outputs

ROWS = network().inside(50)


def to_npz(path, **arrays):
    np.savez(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


def to_compressed(path, **arrays):
    np.savez_compressed(path.with_suffix(".npz"), **arrays)
    return path.with_suffix(".npz")


def to_fortran(path, **arrays):
    return to_npz(path, **{name: np.asfortranarray(x) for name, x in arrays.items()})


def to_parquet(path, **arrays):
    table = {n: list(x) if x.ndim > 1 else x for n, x in arrays.items()}
    pq.write_table(pa.table(table), path.with_suffix(".parquet"), row_group_size=17)
    return path.with_suffix(".parquet")


def to_safetensors(path, **arrays):
    save_file(
        {n: torch.from_numpy(np.array(x)) for n, x in arrays.items()},
        path.with_suffix(".safetensors"),
    )
    return path.with_suffix(".safetensors")


WRITERS = [to_npz, to_compressed, to_fortran, to_parquet, to_safetensors]


def whole(file, name):
    return np.concatenate([getattr(rows, name) for rows in file])


@pytest.mark.parametrize("writer", WRITERS)
def test_every_format_gives_the_rows_in_blocks(tmp_path, writer, monkeypatch):
    monkeypatch.setattr(reading_module, "ROWS", 8)
    path = writer(tmp_path / "a", features=ROWS.features, logits=ROWS.logits, target=ROWS.target)
    file = read_outputs(path)
    assert len(file) == 50
    assert max(map(len, file)) == 8
    for name in ("features", "logits", "target"):
        np.testing.assert_array_equal(whole(file, name), getattr(ROWS, name))
    outside = read_outputs(path, outside=True)
    assert all(rows.target is None for rows in outside)


def test_a_dump_of_openood_in_one_file(tmp_path):
    """As `BaseEvaluator.extract` saves it: features and labels, extended row by row."""
    np.savez(
        tmp_path / "feature",
        feat_list=np.array(list(ROWS.features)),
        label_list=np.array(list(ROWS.target)),
    )
    file = read_outputs(tmp_path / "feature.npz")
    np.testing.assert_array_equal(whole(file, "features"), ROWS.features)
    np.testing.assert_array_equal(whole(file, "target"), ROWS.target)


@pytest.mark.parametrize("named", ["feature", "logits", "labels"])
def test_dumps_of_openood_in_three_files(tmp_path, named):
    """As its development notebook saves them; another set lies beside."""
    for name, rows in {"test": ROWS, "val": network().inside(9, seed=5)}.items():
        parts = {"feature": rows.features, "logits": rows.logits, "labels": rows.target}
        for part, array in parts.items():
            with (tmp_path / f"{name}_{part}.npy").open("wb") as out:
                np.save(out, array)
    file = read_outputs(tmp_path / f"test_{named}.npy")
    for name in ("features", "logits", "target"):
        np.testing.assert_array_equal(whole(file, name), getattr(ROWS, name))


def test_our_own_predictions_with_features_are_read(tmp_path):
    from dataclasses import replace

    p = np.random.default_rng(0).dirichlet(np.ones(3), 20)
    said = Predictions.from_probs(p, np.zeros(20, int), normalised=True, keep_probs=True)
    said = replace(said, features=ROWS.features[:20].astype(np.float16))
    write(tmp_path / "p.parquet", said)
    (rows,) = read_outputs(tmp_path / "p.parquet")
    np.testing.assert_array_equal(rows.features, said.features)
    np.testing.assert_array_equal(rows.probs, p)


def test_bfloat16_is_widened(tmp_path):
    x = torch.from_numpy(ROWS.features).bfloat16()
    save_file({"features": x}, tmp_path / "a.safetensors")
    (rows,) = read_outputs(tmp_path / "a.safetensors")
    np.testing.assert_array_equal(rows.features, x.float().numpy())


def test_a_head_comes_from_a_file(tmp_path):
    head = network().head
    to_npz(tmp_path / "a", **{"fc.weight": head.weight, "fc.bias": head.bias})
    found = read_outputs(tmp_path / "a.npz").head
    assert found is not None
    np.testing.assert_array_equal(found.weight, head.weight)
    assert read_outputs(to_npz(tmp_path / "b", features=ROWS.features)).head is None


BROKEN: dict[str, tuple[dict[str, np.ndarray], str]] = {
    "nothing known": ({"colour": np.zeros((3, 2))}, "holds colour; expected arrays `features`"),
    "only targets": ({"target": np.zeros(3, int)}, "no features, logits or probabilities"),
    "lengths": ({"features": np.zeros((3, 2)), "target": np.zeros(2, int)}, "different lengths"),
    "nan": ({"features": np.array([[1.0], [np.nan]])}, "rows 0 to 1: row 1: features has a value"),
    "flat": ({"features": np.zeros(3)}, "features must be a matrix"),
    "classes": (
        {"logits": np.zeros((2, 3)), "target": np.array([0, 3])},
        r"row 1: target 3 lies outside 0\.\.2",
    ),
}


@pytest.mark.parametrize(
    ("case", "writer"),
    [
        (case, writer)
        for case in BROKEN
        for writer in (to_npz, to_parquet, to_safetensors)
        if (case, writer) != ("lengths", to_parquet)  # columns of a table have one length
    ],
)
def test_broken_files_are_named_with_what_is_wrong(tmp_path, case, writer):
    arrays, message = BROKEN[case]
    path = writer(tmp_path / "broken", **arrays)
    with pytest.raises(BadInput, match=message) as error:
        list(read_outputs(path))
    assert str(path) in str(error.value)


@pytest.mark.parametrize("ending", [".npz", ".npy", ".parquet", ".safetensors"])
def test_what_is_not_what_its_ending_says_is_refused(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(b"hello")
    with pytest.raises(BadInput, match="not a"):
        read_outputs(path)
    with pytest.raises(BadInput, match="there is no file"):
        read_outputs(tmp_path / f"b{ending}")


def test_objects_are_not_unpickled_and_cut_files_are_noticed(tmp_path):
    np.savez(tmp_path / "a.npz", features=np.array([{}], object))
    with pytest.raises(BadInput, match="Python objects"):
        read_outputs(tmp_path / "a.npz")
    with pytest.raises(BadInput, match="no file format called"):
        read_outputs(Path("a.pickle"))


@pytest.mark.parametrize(("first", "second"), [("target", "target"), ("features", "Features")])
def test_an_array_that_comes_twice_is_named(tmp_path, first, second):
    columns = [(first, ROWS.target), (second, ROWS.target), ("logits", list(ROWS.logits))]
    arrays = [pa.array(column) for _, column in columns]
    pq.write_table(pa.Table.from_arrays(arrays, [n for n, _ in columns]), tmp_path / "a.parquet")
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, column in columns:
            np.save(member := io.BytesIO(), np.array(column))
            archive.writestr(f"{name}.npy", member.getvalue())
    for path in (tmp_path / "a.parquet", tmp_path / "a.npz"):
        with pytest.raises(BadInput, match=f"two arrays are called '{first}' and '{second}'"):
            read_outputs(path)


@pytest.mark.parametrize("writer", WRITERS)
def test_every_damage_is_a_sentence(tmp_path, writer):
    arrays = {"features": ROWS.features, "logits": ROWS.logits, "target": ROWS.target}
    path = writer(tmp_path / "a", **arrays)
    whole, refused = path.read_bytes(), 0
    for place in range(0, len(whole), max(1, len(whole) // 300)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            list(read_outputs(path))
        except BadInput as error:
            refused += path.name in str(error)
        path.write_bytes(whole[:place])
        with pytest.raises(BadInput, match=path.name):
            list(read_outputs(path))
    assert refused > 20


def test_an_array_without_rows_of_its_own_is_named(tmp_path):
    np.savez(tmp_path / "a.npz", features=np.zeros(()), epoch=np.array(3), names=np.array([{}]))
    with pytest.raises(BadInput, match="features is one number"):
        read_outputs(tmp_path / "a.npz")
    np.savez(tmp_path / "b.npz", features=ROWS.features, epoch=np.array(3), names=np.array([{}]))
    assert len(read_outputs(tmp_path / "b.npz")) == 50  # what nobody reads may be anything


def test_lists_of_unequal_length_are_refused(tmp_path):
    table = pa.table({"features": [[1.0, 2.0], [1.0, 2.0, 3.0]]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(BadInput, match="differ in length"):
        list(read_outputs(tmp_path / "a.parquet"))


def test_blocks_are_outputs():
    assert all(isinstance(rows, Outputs) for rows in ROWS.blocks())
