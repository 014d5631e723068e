"""The harness that attacks the commands notices what it is there for, and a seed says what it does."""

import mmap
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from torture import forks, inputs, kills, made, oracle, targets
from torture import mutations as change
from torture.tally import READ, REFUSED, Tally

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
    assert forks.forked(BAD[problem], tmp_path, seconds=0.5).wrong.startswith(problem)


def test_a_sentence_is_no_bad_end_however_long(tmp_path: Path) -> None:
    ended = forks.forked(says, tmp_path)
    assert (ended.code, ended.wrong, len(ended.said)) == (2, "", 200_000)
    assert ended.memory > 0


def test_one_fork_does_many_and_its_death_is_told_of_the_right_one() -> None:
    mine = os.getpid()

    def work(number: int) -> tuple[int, bool]:
        if number == 2:
            os.kill(os.getpid(), signal.SIGUSR1)
        if number == 4:
            raise ZeroDivisionError
        return number * number, os.getpid() != mine

    came = dict(forks.one_by_one(range(6), work))
    died = {2: -signal.SIGUSR1, 4: forks.ESCAPED}
    assert came == {n: died.get(n, (n * n, True)) for n in range(6)}


@pytest.mark.parametrize(("said", "code"), [("--version", 0), ("evaluate no.csv", 2)])
def test_a_command_within_a_fork_says_what_it_says_in_one_of_its_own(
    said: str, code: int, tmp_path: Path
) -> None:
    alone = forks.ova(said.split(), tmp_path)
    ((_, within),) = forks.one_by_one([0], lambda _: forks.inside(said.split(), tmp_path))
    assert isinstance(within, forks.Ended)
    assert alone.said
    assert (alone.code, alone.said) == (code, alone.said) == (within.code, within.said)
    assert within.memory > 1e7


def test_a_command_that_hangs_within_a_fork_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "command", lambda _: sleeps())
    ((_, code),) = forks.one_by_one([0], lambda _: forks.inside([], tmp_path, seconds=0.2))
    assert forks.Ended(code, "", 0.2, 0).wrong.startswith("hangs")


@pytest.mark.slow
def test_a_kill_by_work_strikes_only_what_has_begun_and_worked(tmp_path: Path) -> None:
    def works() -> int:
        time.sleep(0.1)
        kill.begun[0] = 1
        while True:
            Path("worked").write_text(str(time.process_time()))

    kill = forks.Kill(0.2, mmap.mmap(-1, 1))
    ended = forks.forked(works, tmp_path, kill=kill)
    assert ended.code == -signal.SIGKILL
    assert ended.work >= 0.2
    assert (tmp_path / "worked").is_file()


def test_a_fork_dies_before_the_change_that_was_named(tmp_path: Path) -> None:
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


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made.predictions(folder := tmp_path_factory.mktemp("sound"))
    return folder


@pytest.mark.parametrize("ending", made.TABLES)
@pytest.mark.parametrize("name", [*change.ABOUT_P, *change.ABOUT_TARGETS])
def test_the_oracle_takes_what_must_be_taken_and_knows_bad_numbers(
    ending: str, name: str, sound: Path, tmp_path: Path
) -> None:
    must, way = (change.ABOUT_P | change.ABOUT_TARGETS)[name]
    held, path = sound / f"test{ending}", tmp_path / f"test{ending}"
    made.TABLES[ending](path, way(Random(0), targets.columns_of(sound / "test.npz")))
    said = oracle.verdict(path, held)
    named = {"p_1 twice", "target twice", "TARGET too", "no p_1", "no target", "logits"}
    named |= {"both p_1 and class_1", "p_1 and 1"}  # of other names than ours it says nothing
    assert said == (change.REFUSE if must == change.REFUSE and name not in named else "")


def test_equal_bad_inputs_count_once_and_facts_are_told_where_there_are_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    whole, part = Tally(), Tally()
    whole.bad, part.bad = {b"a": REFUSED, b"b": READ}, {b"b": READ, b"c": REFUSED}
    whole.add(part)
    whole.show()
    told = capsys.readouterr().out.splitlines()
    assert "bad inputs, no two alike: 3: 2 refused, 1 could be read, 0 wrongly accepted" in told
    assert {"kills: 0", "tracebacks: 0", "hangs: 0"} <= set(told)


def test_one_failure_is_a_failure_of_the_whole(tmp_path: Path) -> None:
    whole, part = Tally(), Tally()
    for name, problem in {"a": "", "b": "a traceback"}.items():
        (tmp_path / name).mkdir()
        part.note("kind", name, problem, tmp_path / name)
    whole.add(part)
    assert (whole.cases.total(), whole.failed.total()) == (2, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["b"]  # to look at
