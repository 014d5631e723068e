"""Files that are not UTF-8: Windows-1252 is guessed where nothing speaks against it, and said."""

import gzip
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ova.userdata import encoding
from ova.userdata.encoding import LATIN, UTF8, encoding_of, remark
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import whole

WORDS = ["café", "Größe", "naïve", "año"]


def write(path: Path, coding: str, packed: bool = False) -> Path:
    """Two classes of words, some of them with letters beyond ASCII."""
    rows = [f"{WORDS[i % 4]} number {i},{'ab'[i % 2]}" for i in range(60)]
    content = "\n".join(["sentence,label", *rows, ""]).encode(coding)
    path.write_bytes(gzip.compress(content) if packed else content)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz"])
@pytest.mark.parametrize("coding", ["utf-8", "utf-8-sig", "latin-1", "cp1252"])
def test_words_are_the_same_in_every_encoding(coding: str, name: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, coding, packed=name.endswith("gz"))
    frame = whole(path)
    assert list(frame.columns) == ["sentence", "label"]
    assert [cell.split()[0] for cell in frame.columns["sentence"][:4]] == WORDS
    notes = gather(Request(data=path, text="sentence")).notes
    guessed = not coding.startswith("utf")
    assert any("Windows-1252" in note for note in notes) == guessed
    assert (remark(path) != []) == guessed


def plain(content: bytes) -> str:
    """The rule by a loop over all splits into characters."""
    at, several, broken = 0, False, False
    while at < len(content):
        for width in (1, 2, 3, 4):
            try:
                content[at : at + width].decode("utf-8")
            except UnicodeDecodeError:
                continue
            several = several or width > 1
            at += width
            break
        else:
            broken, at = True, at + 1
    lacking = any(byte in content for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D))
    return LATIN if broken and not several and not lacking else UTF8


PIECES = [
    b"a",
    b"\n",
    b"\xe9",
    b"\xc3",
    b"\xa9",
    b"\xc3\xa9",
    b"\xe2\x82\xac",
    b"\xf0\x9f",
    b"\x81",
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join), st.integers(1, 5))
def test_the_guess_is_that_of_a_plain_loop(content: bytes, size: int) -> None:
    """Whatever the pieces are in which the file is read."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as at:
        patch.setattr(encoding, "PIECE", size)
        path = Path(at) / "x.csv"
        path.write_bytes(content)
        assert encoding_of(path) == plain(content)
