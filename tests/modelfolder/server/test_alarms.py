"""The alarms of a server are those of `ova monitor` on the log that it wrote, also after a restart."""

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import made_data
import made_served
from ova.cli.app import app as command
from ova.errors import BadInput
from ova.modelfolder.folder import Model, load
from ova.modelfolder.live import Live
from ova.modelfolder.server.log import Log
from ova.modelfolder.watching import watch
from ova.posthoc.monitoring.wealth import limit
from ova.userdata.request import Request

SIZES = (1, 2, 7, 30, 64)  # of requests
LINE = re.compile(r'(\w+)(?:\{about="(.*?)",watched="(.*?)"\})? (\S+)')


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that promises a coverage."""
    at = tmp_path_factory.mktemp("alarms")
    wish = Request(data=made_data.clouds(at / "clouds.csv", 300), settings=("epochs=3",))
    found = made_served.trained(wish, at / "model", "max_p")
    assert load(found).threshold.promised
    return found


def points(n: int, moved: float, seed: int) -> list[dict[str, float]]:
    """Rows like those that the model knows, or moved away from them."""
    draw = np.random.default_rng(seed)
    centres = np.array([(0.0, 0.0), (2.0, 0.0), (0.0, 2.0)])[draw.integers(3, size=n)]
    return [{"x": x, "y": y} for x, y in (centres + draw.normal(size=(n, 2)) + moved).tolist()]


def send(client: TestClient, rows: list[dict[str, Any]], **options: Any) -> None:
    first, turn = 0, 0
    while first < len(rows):
        last = first + SIZES[turn % len(SIZES)]
        reply = client.post("/predict", json={"rows": rows[first:last]}, params=options)
        assert reply.status_code == 200, reply.text
        first, turn = last, turn + 1


def gauges(client: TestClient) -> dict[str, dict[tuple[str, str], float]]:
    found: dict[str, dict[tuple[str, str], float]] = {}
    for line in client.get("/metrics").text.splitlines():
        if line.startswith("ova_monitor") and (of := LINE.fullmatch(line)):
            key = of[2] or "", of[3] or ""
            found.setdefault(of[1].removeprefix("ova_monitor_"), {})[key] = float(of[4])
    return found


def same(found: dict[str, dict[tuple[str, str], float]], folder: Path, log: Path) -> int:
    """Oracle: `ova monitor` on the log, in one piece. Gives the number of alarms."""
    told = watch(folder, [log])
    wanted = [each for each in told.monitor.watched if each.name != "accuracy"]
    keys = [(each.about, each.name) for each in wanted]
    assert found["watching"] == {("", ""): 1}
    assert found["rows"] == {("", ""): len(told.log)}
    assert [*found["wealth"]] == [*found["needed"]] == [*found["alarm"]] == keys
    for key, each in zip(keys, wanted, strict=True):
        its = each.finding
        last = each.wealth[1][-1] if each.bettor.n else 0.0
        assert found["wealth"][key] * math.log(10) == pytest.approx(last, abs=1e-6)
        assert found["needed"][key] * math.log(10) == pytest.approx(limit(its.level))
        assert found["alarm"][key] == (its.alarm is not None)
        if its.alarm is not None:
            assert its.since is not None
            assert found["alarm_row"][key] == its.alarm + 1
            assert found["since_row"][key] == its.since + 1
    if not told.alarms:
        assert not found.get("alarm_row")
    return len(told.alarms)


def test_the_alarms_are_those_of_the_monitor_on_the_log(folder: Path, tmp_path: Path) -> None:
    model, log = load(folder), tmp_path / "log.jsonl"
    with made_served.asking(model, log=Log(log)) as client:
        assert gauges(client)["rows"] == {("", ""): 0}
        assert client.get("/model").json()["unwatched"] is None
        send(client, points(300, 0, 1))
        assert same(gauges(client), folder, log) == 0
        send(client, points(150, 3, 2))
        strange = {"x": "no number", "y": 1}
        assert client.post("/predict", json={"rows": [strange]}).status_code == 422  # is not logged
        last = points(4, 0, 3)
        send(client, [last[0], strange, *last[1:]])
        at_end = gauges(client)
        assert same(at_end, folder, log) > 0
    about = {about for about, _ in at_end["alarm"]}
    assert about == {"inputs", "promise"}  # the coverage needs no label


def test_after_a_restart_it_goes_on_with_the_rows_of_its_model(
    folder: Path, tmp_path: Path
) -> None:
    model, log = load(folder), tmp_path / "log.jsonl"
    with made_served.asking(model, log=Log(log)) as client:
        send(client, points(120, 0, 1))
    lines = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    other = {"model": "0" * 12, "label": "theirs", "best_guess": "theirs"}
    theirs = "".join(json.dumps(line | other) + "\n" for line in lines)
    with log.open("a", encoding="utf-8") as file:  # another model was served in between
        file.write(theirs)
    with made_served.asking(model, log=Log(log)) as client:
        assert same(gauges(client), folder, log) == 0
        send(client, points(200, 3, 2))
        assert same(gauges(client), folder, log) > 0
    with made_served.asking(model, log=Log(log)) as client:  # an alarm stays
        assert same(gauges(client), folder, log) > 0
    told = watch(folder, [log])
    assert len(told.log) == 320
    assert "120 rows are answers of another model and are left out" in told.warnings
    log.write_text(theirs, encoding="utf-8")
    with pytest.raises(BadInput, match="its 120 rows are answers of another model"):
        watch(folder, [log])


def test_rows_that_were_asked_with_another_threshold_break_no_promise(
    folder: Path, tmp_path: Path
) -> None:
    model, log = load(folder), tmp_path / "log.jsonl"
    with made_served.asking(model, log=Log(log)) as client:
        send(client, points(60, 0, 1))
        send(client, points(200, 0, 4), threshold=1)  # all are refused
        assert same(gauges(client), folder, log) == 0
    told = watch(folder, [log])
    assert told.monitor.promised["coverage"].n == 60
    assert "200 rows were asked with another threshold; on them no promise is watched" in (
        told.warnings
    )


def test_what_cannot_be_watched_says_so_and_is_served(
    folder: Path, table: Model, tmp_path: Path
) -> None:
    with made_served.asking(table) as client:  # of an earlier version
        assert gauges(client) == {"watching": {("", ""): 0}}
        assert "kept no scores" in client.get("/model").json()["unwatched"]
    model, log = load(folder), tmp_path / "log.jsonl"
    with made_served.asking(model, log=Log(log)) as client:
        send(client, points(3, 0, 1))
    log.write_bytes(log.read_bytes() + b"\x00" * 40 + b"\n")  # after a power failure
    with made_served.asking(model, log=Log(log)) as client:
        assert gauges(client) == {"watching": {("", ""): 0}}
        assert "cannot read" in client.get("/model").json()["unwatched"]
        send(client, points(3, 0, 1))


def test_the_command_says_from_where_it_watches_or_why_it_does_not(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def serve(app: FastAPI, *_: object) -> None:
        with TestClient(app, base_url="http://127.0.0.1") as client:
            send(client, points(8, 0, 1))

    def told(*words: str) -> str:
        done = CliRunner().invoke(command, ["serve", *words, "--port=0"])
        assert done.exit_code == 0, done.output
        return done.output

    monkeypatch.setattr("ova.modelfolder.server.run.serve", serve)
    log = f"--log={tmp_path / 'log.jsonl'}"
    assert "watched" not in told(str(folder), log)
    assert "watched on from its 8 rows" in told(str(folder), log, "--false-alarms=0.1")
    monkeypatch.setattr("ova.modelfolder.server.run.serve", lambda *_: None)
    said = told(str(made_served.OLD / "model"))
    assert "warning: its answers are not watched: an earlier version" in said


def test_a_log_is_taken_piece_by_piece(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, log = load(folder), tmp_path / "log.jsonl"
    with made_served.asking(model, log=Log(log)) as client:
        send(client, points(100, 0, 1))
    monkeypatch.setattr("ova.modelfolder.log.PIECE", 1000)
    with made_served.asking(model, log=Log(log)) as client:
        same(gauges(client), folder, log)
        watching = client.app.state.watch  # type: ignore[attr-defined]
    assert isinstance(watching, Live)
    assert watching.rows == 100
