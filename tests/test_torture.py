"""The harness that attacks the commands notices what it is there for, and a seed says what it does."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from torture import forks, inputs, kills
from torture import mutations as change
from torture.tally import Tally

from ova.errors import BadInput
from ova.files import parsed


def raises() -> int:
    raise ZeroDivisionError


def sleeps() -> int:
    time.sleep(60)
    return 0


def crashes() -> int:
    os.kill(os.getpid(), signal.SIGUSR1)
    return 0


def says() -> int:
    os.write(2, b"error: no such file\n" * 10_000)
    return 2


BAD: dict[str, Callable[[], int]] = {
    "a traceback": raises,
    "hangs": sleeps,
    "crashes: SIGUSR1": crashes,
    "exit code 7": lambda: 7,
    "fails without a word": lambda: 2,
}


@pytest.mark.parametrize("problem", BAD)
def test_every_bad_end_is_noticed(problem: str, tmp_path: Path) -> None:
    assert forks.forked(BAD[problem], tmp_path, seconds=2).wrong.startswith(problem)


def test_a_sentence_is_no_bad_end_however_long(tmp_path: Path) -> None:
    ended = forks.forked(says, tmp_path)
    assert (ended.code, ended.wrong, len(ended.said)) == (2, "", 200_000)
    assert ended.memory > 0


def test_a_fork_dies_before_the_change_that_was_named(tmp_path: Path) -> None:
    import mmap

    def writes() -> int:
        for name in "abcd":
            Path(name).write_text("x")
            Path(name).rename(f"{name}2")
        return 0

    for last, there in {1: [], 2: ["a"], 3: ["a2"], 8: ["a2", "b2", "c2", "d"]}.items():
        folder = tmp_path / str(last)
        folder.mkdir()
        hook = kills.counting(folder, mmap.mmap(-1, 8), last)
        ended = forks.forked(lambda hook=hook: hook() or writes(), folder)  # type: ignore[misc]
        assert ended.code == -signal.SIGKILL
        assert sorted(path.name for path in folder.iterdir() if path.name[0] != ".") == there


def test_lost_left_over_and_other_files_are_told_and_times_are_not(tmp_path: Path) -> None:
    for name in ("manifest.json", "log.jsonl", "weights"):
        (tmp_path / name).write_text('{"seconds": 1, "epoch": 1}')
    wanted = kills.content(tmp_path)
    for name in ("manifest.json", "log.jsonl"):
        (tmp_path / name).write_text('{"seconds": 2, "epoch": 1}')
    assert kills.differs(wanted, tmp_path) == ""
    (tmp_path / "weights").write_text("other")
    (tmp_path / "log.jsonl").unlink()
    (tmp_path / ".weights.part").touch()
    told = kills.differs(wanted, tmp_path)
    assert told == "left over: .weights.part; lost: log.jsonl; other content: weights"


def test_an_input_that_changed_and_files_that_nobody_asked_for_are_told(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("a")
    before = inputs.contents(tmp_path)
    (tmp_path / "x.csv").write_text("asked for")
    assert inputs.harmed(tmp_path, before) == ""
    (tmp_path / "y.csv").write_text("unasked")
    assert inputs.harmed(tmp_path, before) == "written unasked: y.csv"
    (tmp_path / "in.csv").write_text("b")
    assert inputs.harmed(tmp_path, before) == "changed inputs: in.csv"


@pytest.mark.parametrize("damage", change.BYTES)
def test_a_seed_says_what_becomes_of_bytes(damage: str) -> None:
    data, way = b'{"loss": 0.5, "epoch": 3}\n' * 40, change.BYTES[damage]
    assert way(Random(1), data) == way(Random(1), data)
    assert any(way(Random(seed), data) != data for seed in range(5))
    assert isinstance(way(Random(1), b""), bytes)


def test_json_that_must_be_refused_is_none() -> None:
    data = b'{"loss": 0.5, "more": {"a": [1, 2]}}'
    found = [change.damaged_json(Random(seed), data) for seed in range(200)]
    wrong = [new for _, new, must in found if must == change.REFUSE]
    assert len(wrong) > 20
    for new in wrong:
        with pytest.raises(BadInput):
            parsed(new.decode(), "it")


def test_one_failure_is_a_failure_of_the_whole(tmp_path: Path) -> None:
    whole, part = Tally(), Tally()
    for name, problem in {"a": "", "b": "a traceback"}.items():
        (tmp_path / name).mkdir()
        part.note("kind", name, problem, tmp_path / name)
    whole.add(part)
    assert (whole.cases.total(), whole.failed.total()) == (2, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]  # to look at
