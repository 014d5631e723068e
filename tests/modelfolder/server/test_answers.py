"""The server says what `ova predict` says, together or alone, and the log holds what was said."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import made_served
from ova.modelfolder.answer import Answer, answers
from ova.modelfolder.folder import Model
from ova.modelfolder.server.limits import Limits
from ova.modelfolder.server.log import COLUMNS, Log
from ova.predictions import NONE_LABEL
from ova.userdata.images import Sent
from ova.userdata.rows import Frame, chunks
from ova.userdata.texts import Tokens

TEXTS = ["tell me about rain and the sun", "a loan", "zebra?", "goal and the match", "sun", "x y z"]
ROWS = [
    {"length": length, "width": width, "colour": colour}
    for length, width, colour in [
        (0.1, 6, "green"),
        (2.7, "3.5", "red"),
        ("1000", 1e9, "violet"),
        (5, 2, "blue"),
    ]
]
NAMES = (
    "label",
    "best_guess",
    "confidence",
    "runner_up",
    "runner_up_confidence",
    "score",
    "problem",
)


def wanted(model: Model, pictures: Path) -> tuple[list[Any], Path]:
    """Inputs as they are sent, and a file that `ova predict` reads them from."""
    if model.kind == "image":
        return sorted(pictures.rglob("*.png")), pictures
    given: list[Any] = TEXTS if model.kind == "text" else ROWS
    path = pictures.parent / f"{model.kind}.jsonl"
    lines = [{model.preparation.column: row} if isinstance(row, str) else row for row in given]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return given, path


def ask(client: TestClient, given: list[Any], **options: Any) -> list[dict[str, Any]]:
    if isinstance(given[0], Path):
        files = [("images", (p.name, p.read_bytes())) for p in given]
        reply = client.post("/predict", files=files, params=options)
    else:
        name = "texts" if isinstance(given[0], str) else "rows"
        reply = client.post("/predict", json={name: given}, params=options)
    assert reply.status_code == 200, reply.text
    found: list[dict[str, Any]] = reply.json()["answers"]
    return found


def same(said: dict[str, Any], answer: Answer, exactly: bool) -> None:
    """Whether the server says what the answer says."""
    for name in NAMES:
        mine, theirs = said[name], getattr(answer, name)
        theirs = None if name == "label" and theirs == NONE_LABEL else theirs
        if isinstance(theirs, float) and not exactly:
            assert np.isclose(mine, theirs, rtol=1e-4, atol=1e-6), name
        else:
            assert mine == theirs, name
    assert (said["refused"] is not None) == (answer.label == NONE_LABEL)


@pytest.mark.parametrize("threshold", [None, 0, 0.9, 1])
def test_the_server_says_to_the_last_bit_what_predict_says(
    threshold: float | None, model: Model, pictures: Path
) -> None:
    given, path = wanted(model, pictures)
    oracle = list(answers(model, [str(path)], threshold))
    with made_served.asking(model) as client:
        options = {} if threshold is None else {"threshold": threshold}
        for said, answer in zip(ask(client, given, **options), oracle, strict=True):
            same(said, answer, exactly=True)


def test_asked_one_by_one_from_many_sides_each_gets_its_own_answer(
    model: Model, pictures: Path
) -> None:
    given, path = wanted(model, pictures)
    oracle = list(answers(model, [str(path)]))
    with made_served.asking(model) as client, ThreadPoolExecutor(8) as pool:
        order = [k % len(given) for k in range(60)]
        found = list(pool.map(lambda k: ask(client, [given[k]], classes=k % 3)[0], order))
        for k, said in zip(order, found, strict=True):
            same(said, oracle[k], exactly=False)
            assert len(said.get("classes", [])) == k % 3
        batches = client.app.state.batches  # type: ignore[attr-defined]
        assert batches.rows == 0
    assert len({said["id"] for said in found}) == 60


def test_files_of_text_are_answered_as_rows(text: Model, table: Model, pictures: Path) -> None:
    for model in (text, table):
        _, path = wanted(model, pictures)
        oracle = answers(model, [str(path)])
        with made_served.asking(model) as client:
            reply = client.post("/predict", files={"file": (path.name, path.read_bytes())})
            for said, answer in zip(reply.json()["answers"], oracle, strict=True):
                same(said, answer, exactly=True)


def test_a_row_that_cannot_be_used_harms_no_other(
    table: Model, image: Model, pictures: Path
) -> None:
    path = made_served.OLD / "rows.csv"  # the last rows cannot be used
    oracle = list(answers(table, [str(path)]))
    assert any(answer.problem for answer in oracle)
    with made_served.asking(table) as client:
        reply = client.post("/predict", files={"file": ("new.csv", path.read_bytes())})
        for said, answer in zip(reply.json()["answers"], oracle, strict=True):
            same(said, answer, exactly=True)
    good = next(iter(pictures.rglob("*.png"))).read_bytes()
    with made_served.asking(image) as client:
        files = [
            ("images", ("a.png", good)),
            ("images", ("b.png", good[:80])),
            ("images", ("c", b"c")),
        ]
        one, two, three = client.post("/predict", files=files).json()["answers"]
        assert one["problem"] is None
        assert (two["problem"], three["problem"]) == ("not a whole image", "not an image")
        assert two["confidence"] is three["best_guess"] is None


def test_the_likeliest_classes_and_the_nearest_training_rows_are_named(
    text: Model, tmp_path: Path
) -> None:
    frame = Frame({text.preparation.column: TEXTS})
    assert isinstance(text.preparation, Tokens)
    x = text.preparation.encode(frame)
    p = text.form.probs(text.outputs(x.x)[1]).double().numpy()
    path = tmp_path / "asked.txt"
    path.write_text("\n".join(TEXTS), encoding="utf-8")
    oracle = list(answers(text, [str(path)], explain=True))
    with made_served.asking(text) as client:
        for said, own, answer in zip(
            ask(client, TEXTS, classes=2, explain=True), p, oracle, strict=True
        ):
            assert [each["label"] for each in said["classes"]] == [
                text.classes[k] for k in np.argsort(-own)[:2]
            ]
            assert np.allclose(
                [each["p"] for each in said["classes"]], np.sort(own)[::-1][:2], atol=1e-5
            )
            near = "; ".join(f"{n['example']} at {n['distance']:.3f}" for n in said["nearest"])
            assert near == answer.nearest
        assert "nearest" not in ask(client, TEXTS)[0]


@pytest.mark.parametrize("hashed", [False, True])
def test_the_log_holds_what_was_said_in_words_of_predict(
    hashed: bool, model: Model, pictures: Path, tmp_path: Path
) -> None:
    given, _ = wanted(model, pictures)
    path = tmp_path / "log.jsonl"
    with made_served.asking(model, log=Log(path), hashed=hashed) as client:
        said = [*ask(client, given), *ask(client, given[:1], threshold=1)]
    raw = path.read_text("utf-8")
    lines = [json.loads(line) for line in raw.splitlines()]
    tabular = model.kind == "table" and not hashed
    names = [*COLUMNS, *(ROWS[0] if tabular else [])]
    assert all([*line] == names for line in lines)
    for line, its in zip(lines, said, strict=True):
        shared = its.keys() - {"label"}
        assert {name: line[name] for name in shared} == {name: its[name] for name in shared}
        assert line["label"] == (NONE_LABEL if its["refused"] else its["label"])
    assert [line["threshold"] for line in lines] == [None] * len(given) + [1]
    assert lines == sorted(lines, key=lambda line: line["time"])
    again = lines[-1]["input"] == lines[0]["input"]
    assert again
    if hashed or tabular:
        assert all(line["input"].startswith("sha256:") for line in lines)
        assert len({line["input"] for line in lines}) == len({*map(str, given)})
    if hashed:
        assert not any(str(each) in raw for each in TEXTS)
    if not hashed and model.kind == "text":
        assert [line["input"] for line in lines] == [*TEXTS, TEXTS[0]]
    (frame,) = chunks(path)  # it is rows for the readers of files
    assert not frame.bad
    if tabular:  # and can be asked again
        for line, answer in zip(lines, answers(model, [str(path)]), strict=True):
            assert line["score"] == pytest.approx(answer.score)


def test_what_is_counted_is_what_was_said(table: Model) -> None:
    with made_served.asking(table) as client:
        said = ask(client, ROWS)
        client.post("/predict", json={"rows": []})
        page = client.get("/metrics").text
    got = dict(line.rsplit(" ", 1) for line in page.splitlines() if line[0] != "#")
    assert float(got["ova_answers_total"]) == sum(each["label"] is not None for each in said)
    assert float(got["ova_refusals_total"]) == sum(each["refused"] is not None for each in said)
    assert float(got["ova_unusable_total"]) == sum(each["problem"] is not None for each in said)
    assert float(got['ova_requests_total{status="200"}']) == 1
    assert float(got['ova_requests_total{status="422"}']) == 1
    assert float(got["ova_batch_rows_sum"]) == len(ROWS)
    assert float(got["ova_request_seconds_count"]) == 2
    assert float(got["ova_waiting_rows"]) == 0


def test_the_facts_are_those_of_the_model(model: Model) -> None:
    with made_served.asking(model, Limits(rows=7)) as client:
        facts = client.get("/model").json()
    assert tuple(facts["classes"]) == model.classes
    assert facts["promise"] == list(model.shown.lines(model.classes))
    assert facts["nearest"] == (model.evidence.bank is not None)
    assert facts["limits"]["rows"] == 7


def test_an_image_in_memory_is_read_as_its_file_is(image: Model, pictures: Path) -> None:
    files = sorted(map(str, pictures.rglob("*.png")))
    sent = [Sent(name, Path(name).read_bytes()) for name in files]
    one, two = (image.preparation.encode(Frame({"file": each})) for each in (files, sent))
    assert (one.x == two.x).all()
    assert not one.bad
    assert not two.bad
