"""A server of its own process: killed, it has logged all that it answered; stopped, it answers all it took."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest

import made_served
from ova.errors import BadInput
from ova.modelfolder.answer import answers
from ova.modelfolder.folder import load
from ova.modelfolder.server.run import listen

MODEL = made_served.OLD / "model"
ROWS = [{"length": k / 7, "width": k % 5, "colour": "red"} for k in range(40)]


@contextmanager
def server(log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server on a port that is free, and its address."""
    command = [sys.executable, "-m", "ova", "serve", str(MODEL), "--port=0", f"--log={log}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = ""
            while not (found := re.search(r"at (http://\S+);", said)):
                line = process.stderr.readline()
                assert line, said
                said += line
            yield process, found[1]
        finally:
            process.kill()


def ask(at: str, rows: list[Any]) -> list[dict[str, Any]]:
    body = json.dumps({"rows": rows}).encode()
    request = Request(f"{at}/predict", body, {"content-type": "application/json"})
    with urlopen(request, timeout=60) as reply:
        found: list[dict[str, Any]] = json.load(reply)["answers"]
    return found


def busy(
    at: str, enough: int
) -> tuple[list[threading.Thread], list[dict[str, Any]], threading.Event]:
    """Threads that ask until nobody answers, all that they were told, and when that is enough."""
    told: list[dict[str, Any]] = []
    reached = threading.Event()

    def client(which: int) -> None:
        with suppress(URLError, HTTPException, OSError, ValueError):
            while True:
                told.extend(ask(at, ROWS[which : which + 3]))
                if len(told) >= enough:
                    reached.set()

    threads = [threading.Thread(target=client, args=(which,)) for which in range(4)]
    for thread in threads:
        thread.start()
    return threads, told, reached


def test_small_replies_are_sent_at_once() -> None:
    """asyncio does that only for a socket that says it is one of TCP."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
        with pytest.raises(BadInput, match="Address already in use; name another"):
            listen("127.0.0.1", listening.getsockname()[1])
    with pytest.raises(BadInput, match=r"cannot listen on no\.such\.host\.invalid"):
        listen("no.such.host.invalid", 0)


@pytest.mark.slow
def test_killed_under_load_it_has_logged_every_row_that_it_answered(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    with server(log) as (process, at):
        threads, told, reached = busy(at, 300)
        assert reached.wait(120)
        os.kill(process.pid, signal.SIGKILL)
        for thread in threads:
            thread.join(60)
    with log.open("a") as file:  # as if the machine had torn the last line
        file.write('{"time": "20')
    with server(log) as (_, at):
        told += ask(at, ROWS)
    logged = {line["id"]: line for line in map(json.loads, log.read_text().splitlines())}
    assert len(told) >= 340
    for each in told:
        line = logged[each["id"]]
        names = each.keys() - {"label"}
        assert {name: line[name] for name in names} == {name: each[name] for name in names}


@pytest.mark.slow
def test_stopped_under_load_it_answers_what_it_took(tmp_path: Path) -> None:
    log, path = tmp_path / "log.jsonl", tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    oracle = [answer.confidence for answer in answers(load(MODEL), [str(path)])]
    with server(log) as (process, at):
        first = ask(at, ROWS)
        assert [each["confidence"] for each in first] == oracle
        threads, told, reached = busy(at, 100)
        assert reached.wait(120)
        process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join(60)
        assert process.wait(60) == 0
        assert process.stderr is not None
        assert process.stderr.read() == "stopped; all that was taken is answered\n"
    logged = [json.loads(line)["id"] for line in log.read_text().splitlines()]
    answered = [each["id"] for each in [*first, *told]]
    assert sorted(logged) == sorted(answered)  # nothing was worked on for nobody
