"""The encoding of a file of text: UTF-8, or Windows-1252 (Latin-1) where nothing in it can be UTF-8."""

import codecs
import gzip
import re
from pathlib import Path

UTF8, LATIN = "utf-8-sig", "cp1252"
PACKED = ".gz"
PIECE = 1 << 20  # bytes that are looked at at a time
# How undecodable bytes are carried through, and characters that UTF-8 writes with several bytes.
BROKEN, WHOLE = re.compile("[\udc80-\udcff]"), re.compile("[^\x00-\x7f\udc80-\udcff]")


def encoding_of(path: Path) -> str:
    """How to read a file.

    One with bytes that are no UTF-8 is Windows-1252 if no other bytes are UTF-8 beyond ASCII and it has no
    byte that Windows-1252 lacks; else it is UTF-8 with damaged rows.
    """
    opened = gzip.open if path.suffix.lower() == PACKED else open
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    broken, latin = False, codecs.getincrementaldecoder(LATIN)()
    with opened(path, "rb") as file:
        while piece := file.read(PIECE):
            text = decoder.decode(piece)
            if WHOLE.search(text):
                return UTF8
            broken = broken or BROKEN.search(text) is not None
            try:
                latin.decode(piece)
            except UnicodeDecodeError:
                return UTF8
        broken = broken or BROKEN.search(decoder.decode(b"", final=True)) is not None
    return LATIN if broken else UTF8


def remark(path: Path) -> list[str]:
    """A note on a file that is not UTF-8."""
    if not path.is_file() or path.suffix.lower() not in (".csv", ".tsv", ".txt", PACKED):
        return []
    said = "is no UTF-8 and was read as Windows-1252 (Latin-1); if letters look wrong, save it as UTF-8"
    return [f"{path} {said}"] if encoding_of(path) == LATIN else []
