"""Values that are missing in a table: filled, marked and said; no row and no class is lost by them."""

import math
from pathlib import Path

import numpy as np
import pytest
import torch

import made_data
from ova.errors import BadInput
from ova.modelfolder.answer import answers
from ova.modelfolder.export import export
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import Frame
from ova.userdata.tables import Columns, examine, from_json, learned


def table(path: Path) -> Path:
    """Two classes by size; the third is known by having no size, as nobody could measure it."""
    draw, rows = np.random.default_rng(0), []
    for number in range(80):
        rows.append([draw.normal(0, 0.3), "ab"[number % 2], draw.normal(), "small"])
        rows.append([draw.normal(5, 0.3), "b" if number % 9 else "", draw.normal(), "large"])
        rows.append([("", "NA", "?")[number % 3], "a", draw.normal(), "unknown"])
    return made_data.write_csv(path, ["size", "colour", "noise", "label"], rows)


def frame(**columns: list[object]) -> Frame:
    return Frame(columns)


def learn(*cells: object) -> Columns:
    """What is learned from a column x, beside one that is never empty."""
    examined = examine(frame(x=[*cells], y=[1] * len(cells)), Request(data=Path("x.csv")))
    preparation = examined.learn(range(len(cells)))
    assert isinstance(preparation, Columns)
    return preparation


def test_a_gap_is_the_median_and_an_input_of_its_own() -> None:
    prepared = learn(1, 2, "", 6, None)
    assert (prepared.fill, prepared.marked, prepared.shape) == ((2.0, 1.0), (0,), (3,))
    encoded = prepared.encode(frame(x=["", 2.0, 3.0, ""], y=["1", "2", "3", "na"]))
    assert encoded.bad == {3: "every column is empty"}
    x = prepared.prepare(encoded.x)
    assert x[0, 0] == x[1, 0] < x[2, 0]
    assert x[:3, 2].tolist() == [1, 0, 0]


def test_where_training_had_no_gaps_there_is_no_further_input() -> None:
    prepared = learn(1, 2, 6)
    assert prepared.shape == (2,)
    x = prepared.prepare(torch.tensor([[math.nan, 1], [2, 1]], dtype=torch.float64))
    assert torch.equal(x[0], x[1])


def test_only_the_rows_to_train_on_are_looked_at() -> None:
    data = frame(x=[1, 3, 5, "", 900], y=[1, 1, 1, 1, 1])
    examined = examine(data, Request(data=Path("x.csv")))
    assert examined.learn([0, 1, 2]).to_json()["fill"] == [3.0, 1.0]
    assert examined.learn([0, 1, 2]).to_json()["marked"] == []
    assert examined.learn([0, 1, 2, 3]).to_json()["marked"] == [0]


def test_a_column_without_a_value_among_them_still_gives_numbers() -> None:
    columns = learn(1.0).columns[:1]
    prepared = learned(columns, np.full((4, 1), math.nan))
    assert torch.isfinite(prepared.prepare(torch.tensor([[math.nan], [7.0]]))).all()


def test_a_missing_word_is_a_word_of_its_own() -> None:
    data = frame(colour=["red", "blue", "", "red", None], size=[1, 2, 3, 4, 5])
    examined = examine(data, Request(data=Path("x.csv")))
    encoded = examined.encode(examined.learn(range(5)))
    assert not encoded.bad
    assert encoded.x[:, :3].argmax(1).tolist() == [2, 1, 0, 2, 0]  # "", blue, red
    assert "colour 2" in examined.notes[-1]
    assert "size" not in examined.notes[-1]


def test_a_column_that_is_empty_is_left_out_and_named() -> None:
    data = frame(x=[1, 2, 3], remark=["", None, " "])
    examined = examine(data, Request(data=Path("x.csv")))
    assert examined.learn(range(3)).shape == (1,)
    assert "'remark' is empty" in examined.notes[0]
    with pytest.raises(BadInput, match="no column with a value"):
        examine(frame(remark=["", None]), Request(data=Path("x.csv")))


def test_it_is_learned_from_what_is_missing_and_exported_alike(tmp_path: Path) -> None:
    request = Request(data=table(tmp_path / "sizes.csv"), settings=("epochs=12",))
    gathered = gather(request)
    assert any("size 80, colour 9" in note for note in gathered.notes)
    assert not any("left out" in note for note in gathered.notes)
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gathered, tmp_path / "model", machine, Promise(coverage=0.5)):
        pass
    model = load(tmp_path / "model")
    cells: list[list[object]] = [["", "a", 0], ["n/a", "a", ""], ["5", "", 0], ["0", "a", 1]]
    new = made_data.write_csv(tmp_path / "new.csv", ["size", "colour", "noise"], cells)
    said = [answer.label for answer in answers(model, [str(new)], threshold=0)]
    assert said == ["unknown", "unknown", "large", "small"]
    pytest.importorskip("onnxruntime")
    assert export(model, tmp_path / "model.onnx") < 1e-5


def test_models_of_before_refuse_gaps_as_they_did() -> None:
    old = {key: v for key, v in learn(1, 2, 3).to_json().items() if key not in ("fill", "marked")}
    encoded = from_json(old, Path()).encode(frame(x=[1, "", "NaN"], y=[1, 1, 1]))
    assert encoded.bad == {1: "column 'x' is empty", 2: "column 'x' is empty"}


def test_a_class_that_is_lost_with_its_rows_is_named(tmp_path: Path) -> None:
    rows = [[k % 7 / (1 + k % 2), "ab"[k % 2]] for k in range(60)] + [["many", "c"]] * 3
    data = made_data.write_csv(tmp_path / "x.csv", ["x", "label"], rows)
    notes = gather(Request(data=data, skip_bad=True)).notes
    assert any("1 classes" in note and "'c'" in note for note in notes)
