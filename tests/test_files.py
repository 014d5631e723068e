"""A file is whole or absent, whatever happens while it is written."""

import pytest

from ova.files import read_lines, sha256, write_beside, write_json, write_lines, write_text


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
