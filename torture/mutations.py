"""Ways to damage a file. Each gives the new content, and whether a command must refuse it, must take it, or may do either."""

import json
import re
import struct
import zlib
from collections.abc import Callable
from random import Random
from typing import Any

REFUSE, ACCEPT, EITHER = "refuse", "accept", ""
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
NUMBERS = [b"nan", b"inf", b"-inf", b"-1", b"1e308", b"1e999", b"9" * 5000, b"18446744073709551616"]
NUMBERS += [b"0x1f", b"", b"1_000", b"-0.0", b"\xd9\xa3", b'"', b"1e-320"]
DEEP = 100_000  # brackets within brackets
VALUES: list[Any] = [
    None,
    [],
    {},
    "",
    "x",
    -1,
    0,
    2**53,
    1e308,
    True,
    [[]],
    {"a": None},
    "../../x",
    "\ud800",
]

Bytes = Callable[[Random, bytes], bytes]
Columns = list[tuple[str, list[Any]]]


def _place(draw: Random, data: bytes) -> tuple[int, int]:
    """Two places in the data, the first before the second."""
    first = draw.randrange(len(data) + 1)
    return first, min(len(data), first + draw.choice([1, 8, 64, 512]))


def cut(draw: Random, data: bytes) -> bytes:
    return data[: draw.randrange(max(len(data), 1))]


def flip(draw: Random, data: bytes) -> bytes:
    held = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 8, 64])):
        if held:
            held[draw.randrange(len(held))] ^= draw.choice([1, 0x80, 0xFF, draw.randrange(1, 256)])
    return bytes(held)


def drop(draw: Random, data: bytes) -> bytes:
    first, last = _place(draw, data)
    return data[:first] + data[last:]


def double(draw: Random, data: bytes) -> bytes:
    first, last = _place(draw, data)
    return data[:last] + data[first:last] * draw.choice([1, 2, 50]) + data[last:]


def insert(draw: Random, data: bytes) -> bytes:
    place, _ = _place(draw, data)
    noise = [
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\n",
        b'"',
        b",",
        b"\r",
        b"\xe2\x80\xa8",
        b"\x1a",
    ]
    noise += [draw.randbytes(16), b"x" * 200_000]
    return data[:place] + draw.choice(noise) + data[place:]


def number(draw: Random, data: bytes) -> bytes:
    """One number of a text becomes another thing."""
    found = list(NUMBER.finditer(data[: 1 << 16]))
    if not found:
        return flip(draw, data)
    chosen = draw.choice(found)
    return data[: chosen.start()] + draw.choice(NUMBERS) + data[chosen.end() :]


def lengths(draw: Random, data: bytes) -> bytes:
    """Four or eight bytes that may be a length become a huge or negative one."""
    place = draw.randrange(max(len(data) - 8, 1))
    huge = draw.choice([b"\xff" * 4, b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\xff" * 7 + b"\x7f"])
    return data[:place] + huge + data[place + len(huge) :]


def nothing(_: Random, __: bytes) -> bytes:
    return b""


def noise(draw: Random, data: bytes) -> bytes:
    return draw.randbytes(draw.choice([1, 100, len(data)]))


BYTES: dict[str, Bytes] = {
    f.__name__: f for f in (cut, flip, drop, double, insert, number, lengths, nothing, noise)
}


def damaged(draw: Random, data: bytes) -> tuple[str, bytes]:
    """Bytes with one to three kinds of damage, and their names."""
    names = [draw.choice(list(BYTES)) for _ in range(draw.choice([1, 1, 1, 2, 3]))]
    for name in names:
        data = BYTES[name](draw, data)
    return ", ".join(names), data


def damaged_json(draw: Random, data: bytes) -> tuple[str, bytes, str]:
    """JSON, or lines of it, that says something else; numbers that JSON has not must be refused."""
    how = draw.choice(["NaN", "digits", "deep", "value", "value", "value", "key", "list", "twice"])
    if how == "deep":
        return how, b"[" * DEEP + b"]" * DEEP, REFUSE
    if how in ("NaN", "digits"):
        outside = re.finditer(rb"(?<=[:\[,] )-?\d+(?:\.\d+)?(?=[,\]\}\n])", data)
        found = [(m.start(), m.end()) for m in outside]
        if not found:
            return f"{how} for all", b"NaN" if how == "NaN" else b"9" * 5000, REFUSE
        start, end = draw.choice(found)
        return how, data[:start] + (b"NaN" if how == "NaN" else b"9" * 5000) + data[end:], REFUSE
    lines = data.decode().splitlines() if data.count(b"\n{") else [data.decode()]
    at = draw.randrange(len(lines))
    value = json.loads(lines[at])
    if how == "twice":
        lines.insert(at, lines[at])
        return how, "\n".join(lines).encode(), EITHER
    value = [value] if how == "list" else changed(draw, value, how)
    lines[at] = json.dumps(value)
    return how, "\n".join(lines).encode(), EITHER


def changed(draw: Random, value: Any, how: str) -> Any:
    """A JSON value with one part of it gone or exchanged."""
    deeper = isinstance(value, dict | list) and value and draw.random() < 0.8
    if not deeper:
        return draw.choice(VALUES)
    key = draw.choice(list(value)) if isinstance(value, dict) else draw.randrange(len(value))
    made = dict(value) if isinstance(value, dict) else list(value)
    if how == "key" and draw.random() < 0.5:
        made.pop(key)
    else:
        made[key] = changed(draw, value[key], how)
    return made


# Of a table of predictions with columns target and p_0 .. p_2: what must become of it.
def some(draw: Random, columns: Columns) -> Columns:
    """Most of the rows in any order, so that no two tables are the same."""
    count = len(columns[0][1])
    rows = draw.sample(range(count), draw.randint(count - count // 4, count))
    return [(name, [column[row] for row in rows]) for name, column in columns]


def with_cell(name: str, *values: Any) -> Callable[[Random, Columns], Columns]:
    """One cell of a column exchanged; `p` is any of the probabilities."""

    def change(draw: Random, columns: Columns) -> Columns:
        row, value = draw.randrange(len(columns[0][1])), draw.choice(values)
        held = draw.choice(P) if name == "p" else name
        value = value(draw) if callable(value) else value
        return [(n, [*c[:row], value, *c[row + 1 :]] if n == held else list(c)) for n, c in columns]

    return change


def between(low: float, high: float) -> Callable[[Random], float]:
    """Any number between two."""
    return lambda draw: draw.uniform(low, high)


def with_column(name: str, like: str) -> Callable[[Random, Columns], Columns]:
    """One more column, with the values of another."""
    return lambda draw, columns: sorted_by(draw, [*columns, (name, dict(columns)[like])])


def sorted_by(draw: Random, columns: Columns) -> Columns:
    """The columns in any order."""
    return draw.sample(columns, len(columns))


def without(name: str) -> Callable[[Random, Columns], Columns]:
    """A column less."""
    return lambda _, columns: [(n, c) for n, c in columns if n != name]


def renamed(name: str, new: str) -> Callable[[Random, Columns], Columns]:
    """A column under another name."""
    return lambda _, columns: [(new if n == name else n, c) for n, c in columns]


def twice_an_id(draw: Random, columns: Columns) -> Columns:
    """An id comes again."""
    one, other = draw.sample(dict(columns)["id"], 2)
    return [(n, [one if v == other else v for v in c] if n == "id" else c) for n, c in columns]


def no_rows(_: Random, columns: Columns) -> Columns:
    """Names alone."""
    return [(n, list(c)[:0]) for n, c in columns]


def shuffled(draw: Random, columns: Columns) -> Columns:
    """The same rows in another order."""
    order = draw.sample(range(len(columns[0][1])), len(columns[0][1]))
    return [(n, [c[i] for i in order]) for n, c in columns]


P = ["p_0", "p_1", "p_2"]
Change = tuple[str, Callable[[Random, Columns], Columns]]
ABOUT_P: dict[str, Change] = {
    "NaN": (REFUSE, with_cell("p", float("nan"))),
    "infinite": (REFUSE, with_cell("p", float("inf"), -float("inf"))),
    "negative": (REFUSE, with_cell("p", between(-1, -0.01), -1e-2, -1e308)),
    "above one": (REFUSE, with_cell("p", between(1.01, 2), 1e308)),
    "a logit": (REFUSE, with_cell("p", between(2, 50), between(-50, -2))),
    "both p_1 and class_1": (REFUSE, with_column("class_1", "p_1")),
    "p_1 twice": (REFUSE, with_column("p_1", "p_1")),
    "p_1 and 1": (REFUSE, with_column("1", "p_1")),
    "no p_1": (REFUSE, without("p_1")),
    "logits": (REFUSE, renamed("p_1", "logit_1")),
    "no rows": (REFUSE, no_rows),
    "an id twice": (REFUSE, twice_an_id),
    "half an id": (REFUSE, with_cell("id", 0.5, between(0.1, 0.9))),
    "other order": (ACCEPT, sorted_by),
    "other rows": (ACCEPT, shuffled),
    "no ids": (ACCEPT, without("id")),
    "class_ for p_": (ACCEPT, renamed("p_1", "class_1")),
    "a note": (ACCEPT, with_column("note", "p_1")),
}
ABOUT_TARGETS: dict[str, Change] = {
    "target twice": (REFUSE, with_column("target", "target")),
    "TARGET too": (REFUSE, with_column("TARGET", "target")),
    "target too large": (REFUSE, with_cell("target", 3, 4, 99, 2**31)),
    "target below -1": (REFUSE, with_cell("target", -2, -3, -(2**31))),
    "half a target": (REFUSE, with_cell("target", 0.5, between(0.1, 0.9))),
    "endless target": (REFUSE, with_cell("target", float("inf"))),
    "huge target": (REFUSE, with_cell("target", 1e300, -1e300, 2.0**63)),
    "no target": (REFUSE, without("target")),
    "label for target": (ACCEPT, renamed("target", "label")),
}


def other_classes(_: Random, columns: Columns) -> Columns:
    """A class that the other file has not."""
    return [*columns, ("p_3", [0.0] * len(columns[0][1]))]


# Of features, logits and targets.
ABOUT_DUMPS: dict[str, Change] = {
    "features twice": (REFUSE, with_column("features", "features")),
    "Features too": (REFUSE, with_column("Features", "features")),
    "target twice": (REFUSE, with_column("target", "target")),
    "target too large": (REFUSE, with_cell("target", 99)),
    "half a target": (REFUSE, with_cell("target", 0.5, between(0.1, 0.9))),
    "endless features": (REFUSE, with_cell("features", [float("inf")] * 12)),
    "NaN among logits": (REFUSE, with_cell("logits", [float("nan")] * 5)),
    "no rows": (REFUSE, no_rows),
    "other order": (ACCEPT, sorted_by),
    "feats for features": (ACCEPT, renamed("features", "feats")),
}


def png(width: int, height: int) -> bytes:
    """A black picture of one bit a pixel, or only its header where it would be too large."""

    def part(kind: bytes, data: bytes) -> bytes:
        sum_ = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", sum_)

    header = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    row = b"\0" * (1 + (width + 7) // 8)
    pixels = zlib.compress(row * height, 1) if width * height <= 4e8 else b""
    start = b"\x89PNG\r\n\x1a\n" + part(b"IHDR", header)
    return start + part(b"IDAT", pixels) + part(b"IEND", b"")
