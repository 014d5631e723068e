"""A file is whole or absent, whatever happens while it is written; cores are counted everywhere."""

import errno
import math
import os
import signal
import sys
import zlib
from pathlib import Path

import pytest

from ova import files
from ova.errors import BadInput, mendable
from ova.files import (
    container_limit,
    cores,
    read_json,
    read_lines,
    reading,
    sha256,
    write_beside,
    write_json,
    write_lines,
    write_text,
)
from ova.metrics.ranking import auroc, rank
from ova.training.run_folder import locked


def test_a_failure_leaves_the_old_file_and_no_litter(tmp_path):
    path = tmp_path / "a.txt"
    write_text(path, "old")

    def fails():
        with write_beside(path) as beside:
            beside.write_text("half")
            raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        fails()
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def killed_while_writing(path):
    """Leave what a process leaves that is killed in the middle of a write."""
    child = os.fork()
    if not child:
        with write_beside(path) as beside:
            beside.write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL


@pytest.mark.parametrize("name", ["a.txt", "a" * 250, "a[b]*.txt", "\u2028"])
def test_what_a_killed_writer_left_is_gone_after_the_next(name, tmp_path):
    path = tmp_path / name
    killed_while_writing(path)
    assert len(list(tmp_path.iterdir())) == 1
    write_text(path, "whole")
    assert path.read_text() == "whole"
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_two_writers_at_once_do_not_meet(tmp_path):
    path = tmp_path / "a.txt"
    with write_beside(path) as one:
        one.write_text("one")
        with write_beside(path) as two:
            assert one != two
            two.write_text("two")
        assert path.read_text() == "two"
    assert path.read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_where_files_cannot_be_locked_writing_works_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    write_text(tmp_path / "a.txt", "whole")
    with locked(tmp_path):
        assert [p.name for p in tmp_path.iterdir()] == ["a.txt"]


def test_names_that_are_no_utf8_come_back_from_json(tmp_path):
    write_json(tmp_path / "a.json", {"file": os.fsdecode(b"caf\xe9"), "line": "\u2028\x85"})
    assert read_json(tmp_path / "a.json") == {"file": "caf\udce9", "line": "\u2028\x85"}


@pytest.mark.parametrize("named", [False, True])
def test_an_error_of_the_system_names_the_file_and_not_its_neighbour(named, tmp_path):
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match=r"left on device: .*/a\.txt'$"), write_beside(path) as beside:
        raise OSError(errno.ENOSPC, "no space left on device", *[str(beside)] * named)


def test_nan_is_not_json(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


def test_lines_come_back(tmp_path):
    rows = [{"a": 1.5}, {"a": None, "b": "é\u2028"}]
    write_lines(tmp_path / "deep" / "a.jsonl", rows)
    assert read_lines(tmp_path / "deep" / "a.jsonl") == rows


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[-Infinity]",
        '{"value": 1e999}',
        "9" * 5000,
        "1" + "0" * 400,
        "[" * 100_000,
        '"a',
        "",
        b"\xff\xfe",
    ],
    ids=["nan", "infinity", "overflow", "digits", "large", "deep", "cut", "empty", "bytes"],
)
def test_what_is_not_json_is_named(tmp_path: Path, text: str | bytes) -> None:
    (tmp_path / "a.json").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput, match=r"a\.json is damaged"):
        read_json(tmp_path / "a.json")


@pytest.mark.parametrize(
    "error", [zlib.error("bad"), KeyError("x"), RecursionError(), MemoryError(), Exception()]
)
def test_whatever_a_reader_raises_names_the_file(error: Exception) -> None:
    with (
        pytest.raises(BadInput, match=r"a\.zip: damaged, or not an archive"),
        reading("a.zip", "an archive"),
    ):
        raise error


def test_a_reader_may_be_interrupted_and_may_lack_a_module() -> None:
    for error in (KeyboardInterrupt, ModuleNotFoundError, SystemExit):
        with pytest.raises(error), reading("a.zip", "an archive"):
            raise error


def test_sha256_of_nothing(tmp_path):
    (tmp_path / "empty").touch()
    assert sha256(tmp_path / "empty").startswith("e3b0c44298fc1c14")


# What the system's files say, and how many cores that allows.
LIMITS = {
    "a system without control groups": ({}, math.inf),
    "version 2, no limit": ({"proc": "0::/\n", "cpu.max": "max 100000\n"}, math.inf),
    "version 2, a container": ({"proc": "0::/\n", "cpu.max": "150000 100000\n"}, 1.5),
    "version 2, the limit of a group above": (
        {
            "proc": "0::/a.slice/b.scope\n",
            "a.slice/cpu.max": "200000 100000\n",
            "a.slice/b.scope/cpu.max": "max 100000\n",
        },
        2,
    ),
    "version 2, the tightest of two": (
        {"proc": "0::/a/b\n", "a/cpu.max": "50000 100000\n", "a/b/cpu.max": "300000 100000\n"},
        0.5,
    ),
    "version 1, no limit": (
        {
            "proc": "4:memory:/x\n3:cpu,cpuacct:/x\n0::/\n",
            "cpu/x/cpu.cfs_quota_us": "-1\n",
            "cpu/x/cpu.cfs_period_us": "100000\n",
        },
        math.inf,
    ),
    "version 1, a container under the host's name": (
        {
            "proc": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
            "cpu/cpu.cfs_quota_us": "300000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
        },
        3,
    ),
}


@pytest.mark.parametrize(("said", "allowed"), LIMITS.values(), ids=LIMITS)
def test_the_limit_of_a_container(said: dict[str, str], allowed: float, tmp_path: Path) -> None:
    for name, text in said.items():
        path = tmp_path / ("proc/self/cgroup" if name == "proc" else f"sys/fs/cgroup/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert container_limit(tmp_path) == allowed


@pytest.mark.parametrize(("limit", "counted"), [(0.5, 1), (1, 1), (1.5, 2), (3, 3), (99, 4)])
def test_no_more_cores_than_the_container_may_keep_busy(limit, counted, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 7}, raising=False)
    monkeypatch.setattr(files, "container_limit", lambda: limit)
    assert cores() == counted


@pytest.mark.parametrize(("told", "counted"), [(8, 8), (None, 1)])
def test_cores_are_counted_where_the_system_knows_no_affinity(told, counted, monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)  # as on macOS and Windows
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: told)
    monkeypatch.setattr(files, "container_limit", lambda: math.inf)
    assert cores() == counted
    assert auroc(rank([0.9, 0.8] * 40_000, [0.1, 0.8] * 40_000)) == pytest.approx(0.875)


def test_a_library_that_finds_no_room_is_too_little_memory() -> None:
    error = ImportError("x.so: failed to map segment from shared object")
    assert str(mendable(error)).startswith("there is not enough memory")
