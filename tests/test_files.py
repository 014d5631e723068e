"""A file is whole or absent, whatever happens while it is written; cores are counted everywhere."""

import math
import os
from pathlib import Path

import pytest

from ova import files
from ova.files import (
    container_limit,
    cores,
    read_lines,
    sha256,
    write_beside,
    write_json,
    write_lines,
    write_text,
)
from ova.metrics.ranking import auroc, rank


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


def test_nan_is_not_json(tmp_path):
    with pytest.raises(ValueError, match="JSON"):
        write_json(tmp_path / "a.json", {"value": float("nan")})
    assert not list(tmp_path.iterdir())


def test_lines_come_back(tmp_path):
    rows = [{"a": 1.5}, {"a": None, "b": "é\u2028"}]
    write_lines(tmp_path / "deep" / "a.jsonl", rows)
    assert read_lines(tmp_path / "deep" / "a.jsonl") == rows


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
