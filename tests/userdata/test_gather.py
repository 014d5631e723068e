"""What people bring: every bad input has its sentence, and nothing is silently changed."""

import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

import made_data
from ova.errors import BadInput
from ova.userdata import vocabulary
from ova.userdata.gather import Gathered, gather
from ova.userdata.request import Request
from ova.userdata.rows import whole

TEXT, LABEL = "sentence", "topic"


def text(path: Path, **more: object) -> Gathered:
    return gather(Request(data=path, text=TEXT, label=LABEL, **more))  # type: ignore[arg-type]


def rows(extra: list[list[object]] | None = None) -> list[list[object]]:
    base: list[list[object]] = [
        [f"text number {i} of {'ab'[i % 2]}", "ab"[i % 2]] for i in range(60)
    ]
    return [*base, *(extra or [])]


# What is in the file -> what the error must say.
BAD_TEXTS: dict[str, tuple[bytes, str]] = {
    "one class": (b"sentence,topic\n" + b"x,a\n" * 30, "at least two classes.*all 30 rows are 'a'"),
    "no rows": (b"sentence,topic\n", "no rows"),
    "nothing": (b"", "empty"),
    "no such label": (b"sentence,kind\nx,a\n", "no column 'topic'.*--label.*'sentence', 'kind'"),
    "no such text": (b"body,topic\nx,a\n", "no column 'sentence'.*--text"),
    "twice": (b"sentence,sentence,topic\nx,y,a\n", "two columns are called 'sentence'"),
    "empty text": (b"sentence,topic\nx,a\n,b\n  ,b\n", "2 of 3 rows.*row 2: empty text.*--skip-bad"),
    "no label": (b"sentence,topic\nx,a\ny,\n", "row 2: no label"),
    "ragged": (b"sentence,topic\nx,a\ny\n", "row 2: 1 cells where the header has 2"),
    "not UTF-8": (b"sentence,topic\nth\xc3\xa9,a\ncaf\xe9,b\n", "row 2: not UTF-8"),
    "all different": (b"sentence,topic\n" + b"".join(b"x%d,l%d\n" % (i, i) for i in range(30)),
                      "30 classes in 30 rows.*right column"),
    "taken name": (b"sentence,topic\n" + b"x,a\ny,none of the above\n" * 9, "what a refusal is called"),
    "few": (b"sentence,topic\n" + b"x,a\ny,b\n" * 2, "too few"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TEXTS)
def test_every_bad_text_file_has_its_sentence(name: str, tmp_path: Path) -> None:
    content, said = BAD_TEXTS[name]
    (tmp_path / "x.csv").write_bytes(content)
    with pytest.raises(BadInput, match=f"(?s){said}"):
        text(tmp_path / "x.csv")


BAD_TABLES: dict[str, tuple[str, str]] = {
    "NaN cell": ("x,label\n" + "1,a\n2,b\n" * 9 + "nan,a\n", "row 19: every column is empty"),
    "empty cell": ("x,label\n" + "1,a\n2,b\n" * 9 + ",a\n", "row 19: every column is empty"),
    "infinite": ("x,label\n" + "1,a\n2,b\n" * 9 + "inf,a\n", "row 19: column 'x' is 'inf'"),
    "too large": ("x,label\n" + "1,a\n2,b\n" * 9 + "-1e308,a\n", "row 19: column 'x' is '-1e308', too large"),
    "a word": ("x,label\n" + "1,a\n2,b\n" * 9 + "many,a\n", "row 19: column 'x' is 'many'"),
    "free text": ("x,label\n" + "".join(f"word {i},{'ab'[i % 2]}\n" for i in range(99)),
                  "text with 99 different values.*--text 'x'.*--drop 'x'"),
    "label only": ("label\na\nb\n", "no column besides the label"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_TABLES)
def test_every_bad_table_has_its_sentence(name: str, tmp_path: Path) -> None:
    content, said = BAD_TABLES[name]
    (tmp_path / "x.csv").write_text(content)
    with pytest.raises(BadInput, match=f"(?s){said}"):
        gather(Request(data=tmp_path / "x.csv"))


def not_images(folder: Path) -> None:
    made_data.pictures(folder)
    (folder / "red" / "broken.png").write_bytes(b"GIF89a, they said")


def two_empty_folders(folder: Path) -> None:
    for name in "ab":
        (folder / name).mkdir(parents=True)


BAD_FOLDERS: dict[str, tuple[Callable[[Path], object], str]] = {
    "not an image": (not_images, "broken.png is not an image.*--skip-bad"),
    "one class": (lambda f: (f / "only").mkdir(parents=True), "two class folders"),
    "no image": (two_empty_folders, "no image"),
    "absent": (lambda f: None, "no file or folder"),
}


@pytest.mark.parametrize("name", BAD_FOLDERS)
def test_every_bad_folder_has_its_sentence(name: str, tmp_path: Path) -> None:
    make, said = BAD_FOLDERS[name]
    make(tmp_path / "x")
    with pytest.raises(BadInput, match=f"(?s){said}"):
        gather(Request(data=tmp_path / "x"))


def test_a_folder_that_is_named_by_dots_has_a_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_data.pictures(tmp_path / "colours")
    (tmp_path / "colours" / ".work").mkdir()
    monkeypatch.chdir(tmp_path / "colours" / ".work")
    assert gather(Request(data=Path(".."))).recipe.experiment == "colours"


def test_bad_rows_can_be_left_out_and_are_counted(tmp_path: Path) -> None:
    path = made_data.write_csv(tmp_path / "x.csv", [TEXT, LABEL], rows([["", "a"], ["z", ""]]))
    gathered = text(path, skip_bad=True)
    assert "2 of 62 rows" in gathered.notes[0]
    total = sum(len(make()) for make in gathered.task.evaluations.values())
    assert total + len(gathered.task.train) + len(gathered.task.validation) == 60
    not_images(tmp_path / "images")
    assert "1 of 91" in gather(Request(data=tmp_path / "images", skip_bad=True)).notes[0]


def test_labels_stay_as_they_are(tmp_path: Path) -> None:
    """Commas, quotes and numbers; numbers in the order of their values; CSV and Parquet alike."""
    path = made_data.write_csv(tmp_path / "x.csv", [TEXT, LABEL], [
        [f"t {i}", ['a, "b"', "'c'", "3", "müll\nhalde"][i % 4]] for i in range(80)
    ])  # fmt: skip
    assert text(path).task.classes == ("'c'", "3", 'a, "b"', "müll\nhalde")
    numbers = [f"t {i}" for i in range(80)], [[2, 10, 1][i % 3] for i in range(80)]
    pq.write_table(pa.table({TEXT: numbers[0], LABEL: numbers[1]}), tmp_path / "x.parquet")
    made_data.write_csv(tmp_path / "y.csv", [TEXT, LABEL], zip(*numbers, strict=True))
    first, second = (text(tmp_path / name).task for name in ("x.parquet", "y.csv"))
    assert first.classes == second.classes == ("1", "2", "10")
    assert first.train.y.equal(second.train.y)


def test_columns_of_words_and_an_unnamed_index(tmp_path: Path) -> None:
    path = made_data.write_csv(tmp_path / "x.csv", ["", "x", "colour", "label"], [
        [i, i * 1.5, ["red", "blue"][i % 3 > 1], "ab"[i % 2]] for i in range(60)
    ])  # fmt: skip
    gathered = gather(Request(data=path))
    assert gathered.task.shape == (3,)  # x, blue, red; not the index
    assert "without a name" in gathered.notes[0]
    x = gathered.task.prepare(gathered.task.train.x)  # type: ignore[attr-defined]
    assert abs(float(x[:, 0].mean())) < 1e-6
    assert abs(float(x[:, 0].std(correction=0)) - 1) < 1e-6
    assert gather(Request(data=path, drop=("colour",))).task.shape == (1,)


def test_test_rows_of_unknown_labels_are_outside_and_copies_are_named(tmp_path: Path) -> None:
    path = made_data.write_csv(tmp_path / "x.csv", [TEXT, LABEL], rows())
    test = made_data.write_csv(tmp_path / "t.csv", [TEXT, LABEL], [*rows()[:10], ["else", "zzz"]])
    gathered = text(path, test=test, outside=test)
    sizes = {name: len(make()) for name, make in gathered.task.evaluations.items()}
    assert sizes["test"] == 10
    assert sizes["ood/test"] == 1
    assert (sizes["ood/outside"], sizes["validation/outside"]) == (8, 3)
    assert any("also among those to train on" in note for note in gathered.notes)


def test_the_vocabulary_depends_on_the_texts_alone_and_reads_new_words() -> None:
    texts = [f"booking flights to town{i} and rebooking them" for i in range(30)]
    first, second = vocabulary.wordpiece(texts), vocabulary.wordpiece(texts[::-1])
    assert first.to_str() == second.to_str()
    assert "[UNK]" not in first.encode("rebooked town").tokens
    assert first.encode("booking").tokens == ["[CLS]", "booking", "[SEP]"]


def test_a_table_of_very_many_columns_is_read_in_linear_time(tmp_path: Path) -> None:
    names = [f"c{k}" for k in range(300_000)]
    (tmp_path / "wide.csv").write_text(",".join(names) + "\n" + "1," * 299_999 + "1\n")
    assert len(whole(tmp_path / "wide.csv").columns) == 300_000
    (tmp_path / "wide.csv").write_text(",".join([*names, "c7"]) + "\n")
    with pytest.raises(BadInput, match="two columns are called 'c7'"):
        whole(tmp_path / "wide.csv")


PACKINGS = {
    "rows.csv.gz": lambda path, text: path.write_bytes(gzip.compress(text.encode())),
    "rows.jsonl": lambda path, text: path.write_text(as_objects(text)),
    "rows.jsonl.gz": lambda path, text: path.write_bytes(gzip.compress(as_objects(text).encode())),
}


def as_objects(text: str) -> str:
    """A CSV as JSON lines, empty cells left out."""
    rows = csv.DictReader(text.splitlines())
    return "".join(json.dumps({k: v for k, v in row.items() if v}) + "\n" for row in rows)


@pytest.mark.parametrize("name", PACKINGS)
def test_packed_files_and_json_lines_are_read_as_the_same_table(name: str, tmp_path: Path) -> None:
    content = "x,colour,label\n" + "".join(f"{i},{'rgb'[i % 3]},{i % 2}\n" for i in range(60))
    content += ",r,1\n"
    (tmp_path / "rows.csv").write_text(content)
    PACKINGS[name](tmp_path / name, content)
    plain, other = (gather(Request(data=tmp_path / n)).task for n in ("rows.csv", name))
    assert other.classes == plain.classes
    assert torch.equal(other.train.y, plain.train.y)
    assert torch.equal(other.train.x.nan_to_num(-1), plain.train.x.nan_to_num(-1))  # type: ignore[attr-defined]


BAD_LINES: dict[str, tuple[bytes, str]] = {
    "a list": (b'{"x": 1, "label": "a"}\n{"x": [2], "label": "b"}\n', "row 2: it has a list in 'x'"),
    "no object": (b'{"x": 1, "label": "a"}\n7\n', "row 2: no JSON object"),
    "a new name": (b'{"x": 1, "label": "a"}\n{"z": 1}\n', "row 2: it has 'z', which the first"),
    "no UTF-8": (b'{"x": "q", "label": "a"}\n{"x": "\xe9", "label": "b"}\n', "row 2: not UTF-8"),
    "nothing": (b"\n", "it is empty"),
    "no JSON": (b"x,label\n1,a\n", "line 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD_LINES)
def test_every_bad_line_has_its_sentence(name: str, tmp_path: Path) -> None:
    content, said = BAD_LINES[name]
    (tmp_path / "x.jsonl").write_bytes(content)
    with pytest.raises(BadInput, match=said):
        gather(Request(data=tmp_path / "x.jsonl"))


@pytest.mark.parametrize("name", ["x.csv.gz", "x.jsonl.gz"])
def test_a_packed_file_that_is_damaged_is_named(name: str, tmp_path: Path) -> None:
    whole = gzip.compress(b"x,label\n" + b"1,a\n2,b\n" * 5000)
    for content in (b"x,label\n1,a\n", whole[: len(whole) // 2], whole[:-30] + b"?" * 30):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=name):
            gather(Request(data=tmp_path / name))


def test_images_that_come_divided_are_trained_and_tested_as_they_are(tmp_path: Path) -> None:
    photos = tmp_path / "photos"
    made_data.pictures(photos / "train")
    made_data.pictures(photos / "test", 9)
    found = gather(Request(data=photos))
    asked = gather(Request(data=photos / "train", test=photos / "test"))
    assert found.task.classes == asked.task.classes == ("blue, dark", "green", "red")
    assert len(found.task.evaluations["test"]()) == 27
    assert found.task.sources == asked.task.sources
    assert found.recipe.experiment == "photos"
    assert f"trained on {photos / 'train'}, tested on {photos / 'test'}" in found.notes


def test_classes_that_are_called_train_and_test_are_classes(tmp_path: Path) -> None:
    made = made_data.pictures(tmp_path / "made")
    (tmp_path / "rail").mkdir()
    (made / "red").rename(tmp_path / "rail" / "train")
    (made / "green").rename(tmp_path / "rail" / "test")
    assert gather(Request(data=tmp_path / "rail")).task.classes == ("test", "train")


@pytest.mark.parametrize("size", [8, 20, 96])
def test_images_are_taken_at_the_size_that_was_asked_for(size: int, tmp_path: Path) -> None:
    photos = made_data.pictures(tmp_path / "photos", per_class=8)
    gathered = gather(Request(data=photos, size=size))
    assert gathered.task.shape == (3, size, size)
    assert gathered.task.sources["--size"] == str(size)  # other inputs make other data
    assert "--size" not in gather(Request(data=photos)).task.sources


@pytest.mark.parametrize("size", [1, 7, 1 << 13])
def test_a_size_that_is_none_is_a_sentence(size: int, tmp_path: Path) -> None:
    photos = made_data.pictures(tmp_path / "photos", per_class=8)
    with pytest.raises(BadInput, match=f"--size {size}: wanted 8 to 4096 pixels"):
        gather(Request(data=photos, size=size))
    with pytest.raises(BadInput, match="--size is for a folder of images"):
        gather(Request(data=made_data.table(tmp_path / "t.csv"), size=32))
