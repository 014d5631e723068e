"""The log of a server as `ova review` and `ova monitor` read it: as it is, of every kind of input."""

import json
from pathlib import Path
from typing import Any

import pytest

import made_served
from ova.errors import BadInput
from ova.modelfolder.folder import Model
from ova.modelfolder.log import Labels, read_log
from ova.modelfolder.review.review import review
from ova.modelfolder.server.log import Log
from ova.predictions import NONE, NONE_LABEL

TEXTS = [
    "tell me about rain and the sun",
    "a loan",
    "zebra?",
    "goal and the match",
    "=1+1",
    "x y z",
]
ROWS: list[dict[str, Any]] = [
    {"length": 0.1, "width": 6, "colour": "green"},
    {"length": 2.7, "width": "3.5", "colour": "red"},
    {"length": 30, "width": 1.5, "colour": "violet"},
    {"length": 5, "width": None, "colour": "blue"},
]


def served(model: Model, given: list[Any], log: Path, *, hashed: bool = False) -> list[Any]:
    """What a server says of inputs, one request for each two, and writes into its log."""
    said: list[Any] = []
    with made_served.asking(model, log=Log(log), hashed=hashed) as client:
        for two in (given[i : i + 2] for i in range(0, len(given), 2)):
            if isinstance(two[0], Path):
                files = [("images", (p.name, p.read_bytes())) for p in two]
                reply = client.post("/predict", files=files)
            else:
                name = "texts" if isinstance(two[0], str) else "rows"
                reply = client.post("/predict", json={name: two})
            said += reply.json()["answers"]
    return said


def inputs(model: Model, pictures: Path, at: Path) -> tuple[list[Any], list[str]]:
    """What is sent, and the same as files for `ova review`."""
    if model.kind == "image":
        files = sorted(pictures.rglob("*.png"))
        return [*files], [str(file) for file in files]
    given: list[Any] = TEXTS if model.kind == "text" else ROWS
    lines = [{model.preparation.column: row} if isinstance(row, str) else row for row in given]
    path = at / "inputs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return given, [str(path)]


def test_a_review_of_the_log_is_one_of_the_inputs(
    model: Model, pictures: Path, tmp_path: Path
) -> None:
    given, files = inputs(model, pictures, tmp_path)
    log, images = tmp_path / "log.jsonl", pictures if model.kind == "image" else None
    said = served(model, given, log, hashed=images is not None)  # images by hash
    oracle, found = review(model, files, 1), review(model, [str(log)], 1, images)
    assert found.asked.rows == len(said) == len(given)
    assert len(found.asked)
    assert found.asked.cells == oracle.asked.cells
    assert found.asked.label == oracle.asked.label
    assert found.asked.guess == oracle.asked.guess
    assert (found.asked.refused, found.asked.bad) == (oracle.asked.refused, oracle.asked.bad)
    assert [g.tolist() for g in found.members] == [g.tolist() for g in oracle.members]
    got = [(its["label"] or NONE_LABEL, its["best_guess"]) for its in said]
    assert {*zip(found.asked.label, found.asked.guess, strict=True)} <= {*got}


def test_the_monitor_reads_the_log_as_it_was_said(
    model: Model, pictures: Path, tmp_path: Path
) -> None:
    given, _ = inputs(model, pictures, tmp_path)
    log = tmp_path / "log.jsonl"
    said = served(model, given, log)
    read = read_log([log], model.classes, Labels())
    assert read.skipped == sum(its["problem"] is not None for its in said)
    said = [its for its in said if its["problem"] is None]
    assert len(read) == len(said) > 1
    assert read.score == pytest.approx([its["score"] for its in said], rel=1e-5)
    assert read.guess is not None
    assert [model.classes[k] for k in read.guess] == [its["best_guess"] for its in said]
    assert [None if k == NONE else model.classes[k] for k in read.answer] == [
        its["label"] for its in said
    ]
    assert all(when and when.startswith("20") for when in read.when)
    # Labels that come later find their rows by the id of the answer.
    labels = tmp_path / "labels.csv"
    labels.write_text(f'id,label\n{said[1]["id"]},"{model.classes[0]}"\n', encoding="utf-8")
    known = read_log([log], model.classes, Labels("", labels)).target
    assert known.tolist() == [-2, 0, *[-2] * (len(said) - 2)]


def test_a_table_may_be_nested_in_its_log(table: Model, tmp_path: Path) -> None:
    log, nested = tmp_path / "log.jsonl", tmp_path / "nested.jsonl"
    served(table, ROWS, log)
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    for line, row in zip(lines, ROWS, strict=True):
        for name in row:
            del line[name]
        line["input"] = row
    nested.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    flat, found = review(table, [str(log)], 1), review(table, [str(nested)], 1)
    assert (found.asked.cells, found.asked.label) == (flat.asked.cells, flat.asked.label)
    (one, two) = (read_log([path], table.classes, Labels()) for path in (log, nested))
    assert (one.score == two.score).all()
    assert (one.answer == two.answer).all()


def test_images_are_found_by_their_names_too(image: Model, pictures: Path, tmp_path: Path) -> None:
    files = sorted(pictures.rglob("*.png"))
    kept, log = tmp_path / "kept", tmp_path / "log.jsonl"
    kept.mkdir()
    for number, file in enumerate(files):
        (kept / f"photo {number}.png").write_bytes(file.read_bytes())
    sent = sorted(kept.iterdir())
    served(image, [*sent], log)
    sent[0].unlink()
    found = review(image, [str(log)], 1, kept)
    assert found.asked.bad == 1
    assert {*found.asked.cells["file"]} <= {*map(str, sent[1:])}


def test_what_a_log_has_not_is_told(
    text: Model, table: Model, image: Model, pictures: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    for model, given, says in (
        (text, TEXTS, "review the inputs themselves"),
        (table, ROWS, "review the inputs themselves"),
        (image, sorted(pictures.rglob("*.png")), "--images FOLDER"),
    ):
        served(model, list(given), log, hashed=True)
        with pytest.raises(BadInput, match=says):
            review(model, [str(log)], 1)
        log.unlink()
    with pytest.raises(BadInput, match="leave it out"):
        review(text, [str(log)], 1, pictures)


def test_rows_of_another_model_are_left_out(text: Model, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    served(text, TEXTS, log)
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    whole = review(text, [str(log)], 1)
    other = {"model": "0" * 12, "label": "theirs", "best_guess": "theirs"}
    theirs = "".join(json.dumps(line | other) + "\n" for line in lines)
    log.write_text(log.read_text("utf-8") + theirs, encoding="utf-8")
    found = review(text, [str(log)], 1)
    assert found.asked.cells == whole.asked.cells
    assert found.asked.others == len(TEXTS)
    assert f"{len(TEXTS)} answers of another model are left out" in found.lines()
    log.write_text(theirs, encoding="utf-8")
    with pytest.raises(BadInput, match="all 6 rows are answers of another model"):
        review(text, [str(log)], 1)
