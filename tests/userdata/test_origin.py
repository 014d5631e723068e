"""Every row of every set is called by what stands in the user's file."""

from pathlib import Path

import torch

import made_data
from ova.data.cells import Column
from ova.predictions.sets import SetName
from ova.userdata.gather import OUTSIDE, gather
from ova.userdata.origin import CUT
from ova.userdata.request import Request
from ova.userdata.rows import whole
from ova.userdata.tables import Columns


def test_texts_of_all_files_are_called_by_their_rows(tmp_path: Path) -> None:
    data = made_data.sentences(tmp_path / "topics.csv")
    more = [["my loan and money", "7"], ["never  heard", "new"], ["x " * CUT, "7"]]
    test = made_data.write_csv(tmp_path / "test.csv", ["sentence", "topic"], more)
    far = made_data.write_csv(tmp_path / "far.csv", ["sentence"], [[f"far {i}"] for i in range(9)])
    wish = Request(data=data, text="sentence", label="topic", test=test, outside=far)
    gathered = gather(wish)
    sets = {"train": gathered.task.train, "validation": gathered.task.validation}
    sets |= {name: make() for name, make in gathered.task.evaluations.items()}
    assert gathered.origins.keys() == sets.keys()
    files = {"test": test, SetName.ood("test"): test, OUTSIDE: far, "validation/outside": far}
    for name, examples in sets.items():
        origin, path = gathered.origins[name], files.get(name, data)
        frame = whole(path).columns
        encoded = gathered.preparation.encode(whole(path)).x
        assert len(origin.rows) == len(examples)
        for i, row in enumerate(origin.rows):
            assert origin.place(i) == f"row {row + 1} of {path.name}"
            text = " ".join(frame["sentence"][row].split())
            assert origin.cell(i) == (text if len(text) <= CUT else f"{text[:CUT]}...")
            assert origin.label(i) == (frame["topic"][row] if "topic" in frame else "")
            assert (encoded[row] == examples.x[i]).all()  # type: ignore[attr-defined]


def test_images_are_called_by_their_place_in_the_folder(tmp_path: Path) -> None:
    gathered = gather(Request(data=made_data.pictures(tmp_path / "colours", per_class=10)))
    for origin in gathered.origins.values():
        for i in range(len(origin.rows)):
            assert (tmp_path / "colours" / origin.place(i)).is_file()
            assert Path(origin.place(i)).parent.name == origin.label(i)
            assert origin.cell(i) == ""
    png = gathered.preparation.picture(gathered.task.train.x[0])  # type: ignore[attr-defined]
    assert png.startswith(b"\x89PNG")


def test_rows_of_a_table_are_written_out(tmp_path: Path) -> None:
    data = made_data.table(tmp_path / "table.csv")
    gathered = gather(Request(data=data))
    frame, origin = whole(data).columns, gathered.origins["test"]
    for i, x in enumerate(gathered.task.evaluations["test"]().x):  # type: ignore[attr-defined]
        row = origin.rows[i]
        length, size = (f"{float(frame[name][row]):.6g}" for name in ("length", "size"))
        wanted = f"length {length}, size {size}, colour {frame['colour'][row]}"
        assert gathered.preparation.words(x) == wanted
        assert origin.cell(i) == ""


def test_of_a_wide_row_the_columns_furthest_from_usual_are_written_out() -> None:
    names = [f"c{i}" for i in range(30)]
    table = Columns(tuple(map(Column, names)), mean=(1.0,) * 30, scale=(2.0,) * 30)
    x = torch.ones(30, dtype=torch.float64)
    x[[4, 20, 7]] = torch.tensor([9.0, -5.0, 2.0], dtype=torch.float64)
    said = table.words(x).split(", ")
    assert len(said) == 13
    assert {"c4 9", "c20 -5", "c7 2"} < {*said}
    assert said[:-1] == sorted(said[:-1], key=lambda cell: names.index(cell.split()[0]))
    assert said[-1] == "and 18 columns more"
