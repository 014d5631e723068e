"""Every bad request gets its status and one sentence; who may not ask learns nothing."""

import errno
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from fastapi.testclient import TestClient

import made_served
from ova.modelfolder.answer import compute
from ova.modelfolder.folder import Model
from ova.modelfolder.server.app import create
from ova.modelfolder.server.gate import Door
from ova.modelfolder.server.limits import Limits
from ova.modelfolder.server.log import Log

ROW = {"length": 0.1, "width": 6, "colour": "green"}
JSON = {"content-type": "application/json"}
FORM = {"content-type": "multipart/form-data; boundary=b"}

# A body for each kind, and the status and the beginning of the sentence that it gets.
TABLE: dict[str, tuple[Any, int, str]] = {
    "no JSON": (b"{", 400, "the body is not JSON"),
    "no UTF-8": (b'{"rows": ["\xff"]}', 400, "the body is not JSON"),
    "deep": (b"[" * 100_000, 400, "the body is not JSON"),
    "NaN": (b'{"rows": [NaN]}', 400, "the body is not JSON"),
    "long number": (b'{"rows": [' + b"9" * 5000 + b"]}", 400, "the body is not JSON"),
    "empty": (b"", 400, "the body is not JSON"),
    "a list": ([ROW], 422, "the body is an object with a list"),
    "texts": ({"texts": ["a"]}, 422, "the body is an object with a list"),
    "more": ({"rows": [ROW], "x": 1}, 422, "the body is an object with a list"),
    "an object": ({"rows": ROW}, 422, "the body is an object with a list"),
    "none": ({"rows": []}, 422, "there are no inputs"),
    "many": ({"rows": [ROW] * 9}, 413, "9 inputs in one request; up to 8"),
    "no object": ({"rows": [[1, 2, 3]]}, 422, "row 1 is not an object"),
    "a gap": ({"rows": [ROW, {"length": 1}]}, 422, "row 2 has no column 'width'"),
    "misspelt": ({"rows": [ROW | {"colour ": ""}]}, 422, "row 1 has a column 'colour '"),
    "half a pair": ({"rows": [ROW | {"\ud800": ""}]}, 422, "row 1 has a column '?'"),
    "nested": ({"rows": [ROW | {"width": [1]}]}, 422, "row 1, column 'width', is a list"),
    "long": ({"rows": [ROW | {"colour": "x" * 51}]}, 413, "row 1, column 'colour', has 51"),
    "surrogate": (
        {"rows": [ROW | {"colour": "\ud800"}]},
        422,
        "row 1, column 'colour', is not UTF",
    ),
    "unusable": ({"rows": [ROW | {"length": "abc"}]}, 422, "the input cannot be used: col"),
}
TEXT: dict[str, tuple[Any, int, str]] = {
    "a number": ({"texts": ["a", 1]}, 422, "text 2 is not a string"),
    "null": ({"texts": [None]}, 422, "text 1 is not a string"),
    "surrogate": ({"texts": ["\udfff"]}, 422, "text 1 is not UTF-8"),
    "blank": ({"texts": [" \n"]}, 422, "the input cannot be used: empty text"),
    "long": ({"texts": ["x" * 51]}, 413, "text 1 has 51 characters"),
    "rows": ({"rows": [{"sentence": "a"}]}, 422, "the body is an object with a list"),
}
QUERIES = {
    "threshold=2": "threshold: Input should be less",
    "threshold=nan": "threshold: Input should be a finite number",
    "threshold=": "threshold: Input should be a valid number",
    "classes=-1": "classes: Input should be greater",
    "classes=1.5": "classes: Input should be a valid integer",
    "explain=perhaps": "explain: Input should be a valid boolean",
    "explain=true": "the model decides by max_p, which looks at no training rows",
}
SMALL = Limits(rows=8, letters=50, body=200_000, pixels=10_000)


def refused(reply: Any, status: int, said: str) -> None:
    assert (reply.status_code, [*reply.json()]) == (status, ["error"]), reply.text
    error = reply.json()["error"]
    assert error.startswith(said), error
    assert "\n" not in error


@pytest.mark.parametrize("case", TABLE)
def test_a_bad_table_is_refused(case: str, table: Model, tmp_path: Path) -> None:
    content, status, said = TABLE[case]
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    with made_served.asking(table, SMALL, log=Log(tmp_path / "log")) as client:
        refused(client.post("/predict", content=body, headers=JSON), status, said)
        assert client.post("/predict", json={"rows": [ROW]}).status_code == 200
    assert len((tmp_path / "log").read_text().splitlines()) == 1


@pytest.mark.parametrize("case", TEXT)
def test_a_bad_text_is_refused(case: str, text: Model) -> None:
    content, status, said = TEXT[case]
    with made_served.asking(text, SMALL) as client:
        body = json.dumps(content).encode()
        refused(client.post("/predict", content=body, headers=JSON), status, said)


@pytest.mark.parametrize("query", QUERIES)
def test_a_bad_option_is_refused(query: str, table: Model) -> None:
    with made_served.asking(table) as client:
        reply = client.post(f"/predict?{query}", json={"rows": [ROW]})
        refused(reply, 422, QUERIES[query])


def test_a_bad_image_is_refused_before_it_is_unpacked(image: Model) -> None:
    def png(side: int) -> bytes:
        data: bytes = cv2.imencode(".png", np.zeros((side, side, 3), np.uint8))[1].tobytes()
        return data

    with made_served.asking(image, SMALL) as client:

        def ask(*images: bytes, name: str = "images") -> Any:
            return client.post("/predict", files=[(name, ("a.png", data)) for data in images])

        assert ask(png(100)).status_code == 200
        refused(ask(png(101)), 413, "10201 pixels")
        refused(ask(png(80), png(80)), 413, "12800 pixels")
        refused(ask(b"no image"), 422, "the input cannot be used: not an image")
        refused(ask(b""), 422, "the input cannot be used: not an image")
        refused(ask(png(8), name="image"), 422, "'image' is no file called 'images'")
        refused(ask(*[png(8)] * 9), 400, "the form cannot be read")
        refused(
            client.post("/predict", json={"images": []}), 415, "send multipart/form-data with files"
        )
        refused(
            client.post("/predict", files=[("images", (None, "x"))]), 422, "'images' is no file"
        )


def test_a_bad_file_or_form_is_refused(table: Model) -> None:
    with made_served.asking(table, SMALL) as client:

        def ask(name: str, data: bytes, key: str = "file") -> Any:
            return client.post("/predict", files={key: (name, data)})

        whole = b"length,width,colour,more\n1,2,red,x\n"
        assert ask("a.CSV", whole).status_code == 200
        assert ask("a.tsv", whole.replace(b",", b"\t")).status_code == 200
        assert ask("a.jsonl", json.dumps(ROW).encode()).status_code == 200
        refused(ask("a.parquet", whole), 415, "'a.parquet' does not end with one of")
        refused(ask("a.csv.gz", whole), 415, "'a.csv.gz' does not end")
        refused(ask("../../a", whole), 415, "'../../a' does not end")
        refused(ask("a.csv", b""), 422, "'a.csv': it is empty")
        refused(ask("a.csv", b"length,width\n1,2"), 422, "'a.csv': there is no column 'colour'")
        refused(ask("a.csv", b"length,length\n1,2"), 422, "'a.csv': two columns")
        refused(ask("a.csv", b"length,width,colour\n"), 422, "there are no inputs")
        refused(ask("a.csv", whole + b"1,2,red,x\n" * 8), 413, "9 inputs")
        refused(
            ask("a.csv", whole + b"1,2," + b"x" * 51 + b",x"), 413, "row 2, column 'colour', has"
        )
        refused(ask("a.csv", whole, key="images"), 422, "'images' is no file called 'file'")
        two = [("file", ("a.csv", whole)), ("file", ("b.csv", whole))]
        refused(client.post("/predict", files=two), 422, "2 files in one request")
        refused(client.post("/predict", content=b"x", headers=FORM), 400, "the form cannot be read")
        form = {"content-type": "multipart/form-data"}
        refused(client.post("/predict", content=b"x", headers=form), 400, "the form cannot be read")
        refused(client.post("/predict", content=b"x"), 415, "send application/json with")
        refused(
            client.post("/predict", content=b"--b--\r\n", headers=FORM), 422, "there are no inputs"
        )


def test_what_is_too_large_is_not_read_to_its_end(table: Model) -> None:
    read = 0

    def pieces():
        nonlocal read
        for _ in range(1000):
            read += 10_000
            yield b" " * 10_000

    with made_served.asking(table, SMALL) as client:
        large = client.post("/predict", content=b" " * 200_001, headers=JSON)
        refused(large, 413, "the body is too large; up to 200000 bytes")
        refused(
            client.post("/predict", content=pieces(), headers=JSON), 413, "the body is too large"
        )
    assert read > 0


def test_what_cannot_be_logged_is_not_answered(
    table: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "log")
    with made_served.asking(table, log=log) as client:
        whole = log._file
        monkeypatch.setattr(log, "_file", Full(whole))
        reply = client.post("/predict", json={"rows": [ROW]})
        refused(reply, 503, "the log cannot be written (No space left on device)")
        monkeypatch.setattr(log, "_file", whole)
        assert client.post("/predict", json={"rows": [ROW]}).status_code == 200
    assert len((tmp_path / "log").read_text().splitlines()) == 1


def test_more_than_can_be_held_is_refused_and_given_back(table: Model) -> None:
    with made_served.asking(table, Limits(connections=0)) as client:
        refused(client.post("/predict", json={"rows": [ROW]}), 503, "0 requests are open already")
        assert client.get("/health").status_code == 200
    with made_served.asking(table, Limits(held=1000)) as client:
        for _ in range(3):  # what was refused holds nothing any more
            large = client.post("/predict", content=b" " * 1001, headers=JSON)
            refused(large, 503, "too much arrives at once")
            assert client.post("/predict", json={"rows": [ROW] * 9}).status_code == 200


def test_there_is_nothing_elsewhere(table: Model) -> None:
    with made_served.asking(table) as client:
        refused(client.get("/docs"), 404, "there is nothing at '/docs'")
        refused(client.get("/predict"), 405, "/predict does not take GET")
        refused(client.get("/../model.json"), 404, "there is nothing")


def test_without_the_token_nothing_of_the_model_is_said(table: Model) -> None:
    with made_served.asking(table, door=Door("s3cret")) as client:
        for path in ("/model", "/metrics", "/openapi.json", "/nothing"):
            refused(client.get(path), 401, "wanted the header")
        for given in (
            "",
            "s3cret",
            "Bearer",
            "Bearer s3cre",
            "Bearer s3cret2",
            "Basic s3cret",
            "B\xff",
        ):
            raw = {b"authorization": given.encode("latin-1")}
            reply = client.post("/predict", json={"rows": [ROW]}, headers=raw)
            refused(reply, 401, "wanted the header")
            assert reply.headers["www-authenticate"] == "Bearer"
        for path in ("/", "/try.js", "/try.css", "/health", "/ready"):
            reply = client.get(path)
            assert reply.status_code == 200
            assert not any(f">{name}<" in reply.text for name in table.classes)
        head = {"authorization": "bearer s3cret"}
        assert client.post("/predict", json={"rows": [ROW]}, headers=head).status_code == 200
        described = client.get("/openapi.json", headers=head).json()
        assert described["paths"]["/predict"]["post"]["security"] == [{"HTTPBearer": []}]


def test_pages_of_other_sites_and_other_names_may_not_ask(table: Model) -> None:
    hosts = frozenset({"127.0.0.1", "localhost", "::1"})
    with made_served.asking(table, door=Door(hosts=hosts)) as client:

        def ask(**headers: str) -> Any:
            return client.post("/predict", json={"rows": [ROW]}, headers=headers)

        assert ask().status_code == 200
        assert ask(host="localhost:8000", origin="http://localhost:8000").status_code == 200
        assert ask(host="[::1]:8000").status_code == 200
        refused(ask(host="rebound.example:8000"), 403, "this server is not called")
        refused(ask(origin="http://elsewhere.example"), 403, "a page of another site")
        refused(ask(origin="null"), 403, "a page of another site")
    behind = Door(hosts=hosts, proxies=frozenset({"ova.example"}))
    with made_served.asking(table, door=behind) as client:
        body = {"rows": [ROW]}
        for host in ("127.0.0.1", "ova.example"):
            head = {"host": host, "origin": "https://ova.example"}
            assert client.post("/predict", json=body, headers=head).status_code == 200
            head["origin"] = "https://ova.example.evil"
            refused(client.post("/predict", json=body, headers=head), 403, "a page of another")
    with made_served.asking(table) as client:
        assert client.get("/health", headers={"host": "any.example"}).status_code == 200


def test_every_reply_says_what_a_browser_may_do(table: Model) -> None:
    with made_served.asking(table, SMALL) as client:
        for reply in (
            client.get("/"),
            client.get("/no"),
            client.post("/predict", content=b" " * 300_000),
        ):
            policy = reply.headers["content-security-policy"]
            assert policy.startswith("default-src 'none'; script-src 'self';")
            assert "unsafe" not in policy
            assert reply.headers["x-content-type-options"] == "nosniff"


class Full:
    """A file on a disk that becomes full."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def write(self, data: Any) -> int:
        self.file.write(data[:20])
        raise OSError(errno.ENOSPC, "No space left on device")


class Slow:
    """A preparation that waits where there is something to prepare."""

    def __init__(self, prepared: Any) -> None:
        from threading import Event

        self.prepared, self.go, self.begun = prepared, Event(), Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.prepared, name)

    def encode(self, frame: Any) -> Any:
        if any(frame.columns["sentence"]):
            self.begun.set()
            assert self.go.wait(60)
        return self.prepared.encode(frame)


@pytest.fixture
def slow(text: Model) -> Model:
    from dataclasses import replace

    return replace(text, preparation=Slow(text.preparation))


def test_what_takes_too_long_or_waits_too_long_is_refused(slow: Model) -> None:
    body = {"texts": ["sun"]}
    with made_served.asking(slow, Limits(seconds=0.2, waiting=2)) as client:
        refused(client.post("/predict", json=body), 503, "there was no time to answer within 0.2 s")
        assert client.get("/health").status_code == 200
        slow.preparation.go.set()  # type: ignore[attr-defined]
    with ThreadPoolExecutor(4) as pool:
        slow.preparation.go.clear()  # type: ignore[attr-defined]
        slow.preparation.begun.clear()  # type: ignore[attr-defined]
        with made_served.asking(slow, Limits(waiting=2)) as client:
            asked = [pool.submit(client.post, "/predict", json=body)]
            assert slow.preparation.begun.wait(60)  # type: ignore[attr-defined]
            asked += [pool.submit(client.post, "/predict", json=body) for _ in range(2)]
            while client.get("/ready").status_code != 503:
                pass
            reply = client.post("/predict", json=body)
            refused(reply, 503, "2 rows are waiting already")
            assert int(reply.headers["retry-after"]) >= 1
            slow.preparation.go.set()  # type: ignore[attr-defined]
            assert [each.result(60).status_code for each in asked] == [200] * 3


def test_a_failure_of_ours_is_said_and_not_catching(
    table: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = compute

    def wrong(model: Model, frame: Any) -> Any:
        if 13 in frame.columns["length"]:
            raise ZeroDivisionError
        return right(model, frame)

    monkeypatch.setattr("ova.modelfolder.server.replies.compute", wrong)
    app = create(table)
    with TestClient(app, "http://127.0.0.1", raise_server_exceptions=False) as client:
        reply = client.post("/predict", json={"rows": [ROW | {"length": 13}]})
        refused(reply, 500, "the server failed at this request (ZeroDivisionError)")
        assert client.post("/predict", json={"rows": [ROW]}).status_code == 200
