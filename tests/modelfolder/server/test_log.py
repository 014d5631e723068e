"""The log: whole lines only, whatever was torn; of others' files nothing is touched."""

import errno
import json
import os
from pathlib import Path

import pytest

from ova.errors import BadInput
from ova.modelfolder.server.log import BLOCK, Log
from ova.modelfolder.server.refused import Refused

ROWS = [
    {"time": "2026", "input": text}
    for text in ("plain", "two\nlines", "caf\u00e9 \u2028", "x" * BLOCK)
]


def filled(path: Path) -> bytes:
    log = Log(path)
    log.write(ROWS)
    log.close()
    return path.read_bytes()


def read(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def test_a_log_goes_on_where_it_ended(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    filled(path)
    assert read(path) == ROWS
    filled(path)
    assert read(path) == ROWS * 2


@pytest.mark.parametrize("kept", [0, 1, 5, 9, 40, 90, 91, 92, 100, BLOCK, BLOCK + 120, -2, -1])
def test_wherever_it_was_torn_the_whole_lines_stay(kept: int, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    torn = filled(path)[:kept]
    path.write_bytes(torn)
    whole = torn[: torn.rfind(b"\n") + 1]  # oracle
    log = Log(path)
    assert log.cut == len(torn) - len(whole)
    assert path.read_bytes() == whole
    log.write(ROWS[:1])
    log.close()
    assert path.read_bytes().startswith(whole)
    assert read(path)[-1] == ROWS[0]


@pytest.mark.parametrize(
    "content", [b"a,b\n1,2", b"[1]", b"\n", b'{"text": "x"}\n{"te', b"\x00" * 99]
)
def test_a_file_that_is_no_log_is_left_as_it_is(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_bytes(content)
    with pytest.raises(BadInput, match="is no log of `ova serve`"):
        Log(path)
    assert path.read_bytes() == content


def test_two_servers_do_not_write_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log(path)
    with pytest.raises(BadInput, match="another server"):
        Log(path)
    log.close()
    Log(path).close()


def test_nothing_is_made_where_no_log_can_be(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a folder"):
        Log(tmp_path)
    with pytest.raises(BadInput, match="No such file"):
        Log(tmp_path / "no" / "log.jsonl")


class Full:
    """A file on a disk that takes some bytes of what is written, and then no more."""

    def __init__(self, file) -> None:
        self.file, self.room = file, 30

    def __getattr__(self, name):
        return getattr(self.file, name)

    def write(self, data) -> int:
        if not self.room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written = self.file.write(data[: self.room])
        self.room -= written
        return int(written)


def test_on_a_full_disk_nothing_of_the_batch_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log(tmp_path / "log.jsonl")
    log.write(ROWS[:1])
    monkeypatch.setattr(log, "_file", Full(log._file))
    with pytest.raises(Refused, match="No space left") as refused:
        log.write(ROWS)
    assert refused.value.status == 503
    assert read(log.path) == ROWS[:1]
    log.close()
