"""Predictions that would print wrong numbers are refused with the column named; damage is a sentence."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ova.cli.app import app
from ova.errors import BadInput
from ova.metrics.evaluate import evaluate
from ova.predictions import Predictions, Reading, parquet, read_any, write
from ova.predictions.formats import layout


def three(n: int = 20) -> dict[str, Any]:
    r = np.random.default_rng(0)
    p, y = r.dirichlet(np.ones(4), n), r.integers(0, 4, n)
    return {"confidence": p.max(1), "prediction": p.argmax(1), "target": y}


def said(n: int = 20, normalised: bool = True, K: int = 4) -> Predictions:
    r = np.random.default_rng(1)
    p = r.dirichlet(np.ones(K), n) if normalised else r.random((n, K))
    return Predictions.from_probs(p, r.integers(0, K, n), normalised=normalised, keep_probs=True)


def save(path: Path, columns: list[tuple[str, Any]]) -> Path:
    """Columns under names that may come twice, in the format of the file's ending."""
    if path.suffix == ".csv":
        rows = zip(*(c for _, c in columns), strict=True)
        lines = [",".join(n for n, _ in columns), *(",".join(map(str, row)) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    elif path.suffix == ".parquet":
        table = pa.Table.from_arrays([pa.array(c) for _, c in columns], [n for n, _ in columns])
        pq.write_table(table, path)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name, column in columns:
                file = io.BytesIO()
                np.save(file, np.asarray(column))
                archive.writestr(f"{name}.npy", file.getvalue())
    return path


FORMATS = (".csv", ".parquet", ".npz")
HALF, ZEROS = [0.5] * 20, [0] * 20
TWICE: dict[str, tuple[list[tuple[str, Any]], str]] = {
    "target": ([("target", ZEROS)], "two columns are called 'target'"),
    "TARGET": ([("TARGET", ZEROS)], "'target' and 'TARGET' differ only in case"),
    "confidence": ([("Confidence", HALF)], "'confidence' and 'Confidence'"),
    "p_0 and 0": ([("p_0", HALF), ("p_1", HALF), ("0", HALF)], "'p_0' and '0' .* class 0"),
    "class_1": (
        [("p_0", HALF), ("p_1", HALF), ("class_1", HALF)],
        "'p_1' and 'class_1' .* class 1",
    ),
    "p_0 twice": ([("p_0", HALF), ("p_1", HALF), ("p_0", HALF)], "'p_0' and 'p_0' .* class 0"),
    "both forms": ([("probs", HALF), ("p_0", HALF)], "'probs' and 'p_0' both"),
}


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize("case", TWICE)
def test_a_column_that_comes_twice_is_named(tmp_path: Path, ending: str, case: str) -> None:
    more, message = TWICE[case]
    path = save(tmp_path / f"a{ending}", [*three().items(), *more])
    with pytest.raises(BadInput, match=f"a{ending}: {message}"):
        read_any(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("ending", FORMATS)
def test_columns_that_nobody_reads_may_come_twice(tmp_path: Path, ending: str) -> None:
    path = save(tmp_path / f"a{ending}", [*three().items(), ("note", HALF), ("note", ZEROS)])
    assert len(read_any(path)) == 20


@pytest.mark.parametrize("ending", FORMATS)
@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a.png", *(f"{i}.png" for i in range(18)), "a.png"], "'a.png' comes more than once"),
        ([0.0, *range(19)], "id 0 comes more than once"),
        ([0.5, *range(19)], "row 0: id must be a whole number, not 0.5"),
    ],
    ids=["names", "numbers", "halves"],
)
def test_repeated_ids_are_refused_whatever_they_are(
    tmp_path: Path, ending: str, ids: list[Any], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        read_any(save(tmp_path / f"a{ending}", [*three().items(), ("id", ids)]))


def test_a_name_that_comes_again_in_another_chunk_is_found(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(parquet, "CELLS", 8)
    ids = [f"{i % 19}.png" for i in range(20)]
    with pytest.raises(BadInput, match=r"'0\.png' comes more than once"):
        read_any(save(tmp_path / "a.parquet", [*three().items(), ("id", ids)]))


def ours(path: Path, facts: dict[str, Any] | None = None, **columns: Any) -> Path:
    """A file of ours with some columns exchanged behind our back."""
    write(path, said())
    table = pq.read_table(path)
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, pa.array(column))
    if facts is not None:
        table = table.replace_schema_metadata({parquet.KEY: json.dumps(facts).encode()})
    pq.write_table(table, path)
    return path


LIES: dict[str, tuple[dict[str, Any], str]] = {
    "log_p": ({"log_p": [5.0] * 20}, "log_p 5 "),
    "squared_error": ({"squared_error": [-3.0] * 20}, "squared_error -3 "),
    "entropy": ({"entropy": [9.0] * 20}, "entropy 9 "),
    "log_none": ({"log_none": [1.0] * 20}, "log_none 1 "),
    "nan": ({"entropy": [np.nan] * 20}, "entropy nan "),
    "certain": ({"log_p": [0.0] * 20}, "log_p 0 "),
    "prediction": ({"prediction": [3] * 20}, "prediction 3 is not the class of the largest"),
    "confidence": ({"confidence": [1.0] * 20}, "confidence 1 is not the largest"),
    "matrix": ({"probs": [[2.0, -1.0, 0.0, 0.0]] * 20}, r"class 0 is 2, outside \[0, 1\]"),
    "width": ({"probs": [[0.5, 0.5]] * 20}, "2 probabilities .* 4 classes"),
    "text": ({"confidence": ["high"] * 20}, "confidence must be numbers, not string"),
    "target": ({"target": [0.5] * 20}, "target must be a whole number"),
    "classes": ({"facts": {"classes": -4, "normalised": True}}, "does not say its classes"),
    "normalised": ({"facts": {"classes": 4, "normalised": "yes"}}, "does not say its classes"),
}


@pytest.mark.parametrize("case", LIES)
def test_a_file_of_ours_is_checked_like_anybodys(tmp_path: Path, case: str) -> None:
    columns, message = LIES[case]
    with pytest.raises(BadInput, match=f"a.parquet.*{message}"):
        read_any(ours(tmp_path / "a.parquet", **columns))


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("outside", [True, False])
def test_what_we_write_passes_the_checks(tmp_path: Path, normalised: bool, outside: bool) -> None:
    r = np.random.default_rng(2)
    z = r.normal(0, 8, (500, 6)).astype(np.float32)
    log_p = -np.logaddexp(0, -z)
    if normalised:
        log_p = z - np.logaddexp.reduce(z, axis=1, keepdims=True)
    y = np.full(500, -1) if outside else r.integers(0, 6, 500)
    for keep in (True, False):
        p = Predictions.from_logits(z, log_p, y, normalised=normalised, keep_probs=keep)
        write(tmp_path / "a.parquet", p)
        back = read_any(tmp_path / "a.parquet", Reading(outside=outside))
        np.testing.assert_array_equal(back.confidence, p.confidence)


@pytest.mark.parametrize("name", ["shift/fog/1", "ood/noise"])
def test_sets_of_another_number_of_classes_are_refused(name: str) -> None:
    other = said(K=5)
    if name.startswith("ood/"):
        other = Predictions.from_probs(other.probs, [-1] * 20, normalised=True)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=f"{name} has 5 classes, test has 4"):
        evaluate({"test": said(), name: other})


def test_more_columns_than_a_table_should_have_are_refused(tmp_path: Path) -> None:
    names = [f"p_{k}" for k in range(layout.MOST + 1)]
    (tmp_path / "a.csv").write_text(",".join(["target", *names]) + "\n")
    with pytest.raises(BadInput, match="a matrix `probs`"):
        read_any(tmp_path / "a.csv")


def npy(array: Any, **header: Any) -> bytes:
    """An array as .npy, with some of its header exchanged."""
    file = io.BytesIO()
    data = np.asarray(array)
    told = np.lib.format.header_data_from_array_1_0(data) | header
    np.lib.format.write_array_header_1_0(file, told)
    return file.getvalue() + data.tobytes()


def zipped(path: Path, held: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in held.items():
            archive.writestr(f"{name}.npy", content)
    return path


def members(**more: bytes) -> dict[str, bytes]:
    return {name: npy(column) for name, column in three().items()} | more


def test_a_shape_that_the_file_does_not_hold_is_refused_before_memory_is_asked_for(tmp_path):
    for shape in ((10**13,), (20, 10**12), (-1,), (2**63,)):
        path = zipped(tmp_path / "a.npz", members(confidence=npy(HALF, shape=shape)))
        with pytest.raises(BadInput, match="confidence"):
            read_any(path)
    held = {"probs": npy([HALF], shape=(2**40, 20)), "target": npy(ZEROS)}
    with pytest.raises(BadInput, match=r"b\.npz: .*probs"):
        read_any(zipped(tmp_path / "b.npz", held))


def test_a_column_that_is_one_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"confidence has shape \(\), not one number per row"):
        read_any(zipped(tmp_path / "a.npz", members(confidence=npy(0.5))))


def refused(path: Path, whole: bytes, step: int) -> int:
    """How many of the files with one byte turned over are refused by name; all others are read."""
    count = 0
    for place in range(4, len(whole), step):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            read_any(path)
        except BadInput as error:
            count += path.name in str(error)
    return count


@pytest.mark.parametrize("how", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_every_damage_to_an_archive_is_a_sentence(tmp_path: Path, how: int) -> None:
    whole = zipped(tmp_path / "a.npz", members(), how).read_bytes()
    assert refused(tmp_path / "b.npz", whole, 7) > 20


def test_every_damage_to_parquet_is_a_sentence(tmp_path: Path) -> None:
    assert refused(tmp_path / "b.parquet", ours(tmp_path / "a.parquet").read_bytes(), 11) > 20
    whole = save(tmp_path / "a.parquet", [*three().items()]).read_bytes()
    assert refused(tmp_path / "b.parquet", whole, 11) > 20


def test_a_header_cell_of_a_megabyte_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x" * (1 << 25) + ",target\n1,2\n")
    with pytest.raises(BadInput, match=r"a\.csv"):
        read_any(tmp_path / "a.csv")


def test_a_calibration_of_other_classes_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "test.parquet", said())
    write(tmp_path / "held.parquet", said(K=5))
    line = ["calibrate", f"{tmp_path}/test.parquet", "--fit", f"{tmp_path}/held.parquet"]
    with pytest.raises(BadInput, match=r"held\.parquet has 5 classes, .*test\.parquet has 4"):
        app(line, standalone_mode=False)
