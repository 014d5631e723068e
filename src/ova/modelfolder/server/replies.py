"""Replies to requests that are worked on together: computed at once, logged, and written as JSON."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from itertools import count, repeat
from typing import Any

import numpy as np

from ova.modelfolder.answer import Answer, compute, neighbours, said
from ova.modelfolder.asking import told
from ova.modelfolder.folder import Model, digest
from ova.modelfolder.live import Live
from ova.modelfolder.server.asked import Asked, joined
from ova.modelfolder.server.counts import Counts
from ova.modelfolder.server.log import COLUMNS, Log
from ova.modelfolder.server.refused import Refused
from ova.modelfolder.write import clean, plain
from ova.predictions import NONE_LABEL
from ova.scores import Outputs
from ova.userdata.images import Sent
from ova.userdata.rows import FILE, Frame

Reply = bytes | Refused
Row = dict[str, Any]


@dataclass(frozen=True)
class Replies:
    """What a batcher works with; one thread calls it."""

    model: Model
    counts: Counts
    log: Log | None = None
    hashed: bool = False  # of an input the log has its hash alone
    watch: Live | str = ""  # what watches the answers, or why nothing does
    _ids: Iterator[int] = field(default_factory=lambda: count(1), repr=False)
    _start: str = field(default_factory=lambda: os.urandom(4).hex(), repr=False)

    @cached_property
    def name(self) -> str:
        """The first letters of the model's hash, which its folder has in `model.json`."""
        return digest(self.model.facts)[:12]

    def __call__(self, asked: Sequence[Asked]) -> list[Reply]:
        """A reply to each, with one threshold for all, and explained or not.

        A request of which no row can be used is refused; none of its rows is logged.
        """
        whole = joined([each.frame for each in asked])
        threshold = asked[0].threshold
        computed = compute(self.model, whole)
        answers = list(said(self.model, computed, threshold))
        rows = [self.row(answer, threshold) for answer in answers]
        most = max(each.classes for each in asked)
        likely = likeliest(computed.rows, self.model.classes, most)
        near: Any = neighbours(self.model, computed.rows) if asked[0].explain else repeat(None)
        more = list(zip(likely, near, strict=False))
        replies, kept, first = list[Reply](), list[int](), 0
        for each in asked:
            its = range(first, first := first + len(each.frame))
            if all(answers[i].problem is not None for i in its):
                replies.append(unusable([str(answers[i].problem) for i in its]))
                continue
            kept += its
            said_of = [rows[i] | extras(each, answers[i], *more[i]) for i in its]
            replies.append(as_json({"answers": said_of, "model": self.name}))
        if self.log is not None and kept:
            logged = self.lines(whole, rows, threshold)
            self.log.write([logged[i] for i in kept])
        if kept:
            if isinstance(self.watch, Live):
                self.watch.add([rows[i] for i in kept], own=threshold is None)
            self.counts.say([answers[i] for i in kept], len(whole))
        return replies

    def row(self, answer: Answer, threshold: float | None) -> Row:
        """What is said of one input."""
        its, used = told(self.model, answer, threshold), answer.problem is None
        return {
            "id": f"{self._start}-{next(self._ids)}",
            "label": its.label,
            "best_guess": its.best_guess,
            "confidence": its.confidence,
            "runner_up": its.runner_up,
            "runner_up_confidence": its.runner_up_confidence,
            "score": its.score,
            "refused": its.why if used else None,
            "problem": clean(answer.problem),
        }

    def lines(self, frame: Frame, rows: Sequence[Row], threshold: float | None) -> list[Row]:
        """The rows of the log: as `ova predict` writes them, with the columns of a table."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        fixed: Row = {"time": now, "model": self.name, "threshold": threshold}
        found = []
        cells = zip(*frame.columns.values(), strict=True)
        for row, values in zip(rows, cells, strict=True):
            named = dict(zip(frame.columns, values, strict=True))
            line: Row = fixed | row | {"input": self.input_of(named)}
            if row["refused"] is not None:
                line["label"] = NONE_LABEL
            line = {name: line[name] for name in COLUMNS}
            if not self.model.preparation.column and not self.hashed:
                line |= {column_of(name): plain(value) for name, value in named.items()}
            found.append(line)
        return found

    def input_of(self, cells: Mapping[str, Any]) -> str:
        """How the log calls an input: the text, the name of an image, or the hash of what was sent."""
        column = self.model.preparation.column
        if column and not self.hashed:
            return printable(cells[column])
        if column == FILE:
            return hashed(cells[FILE].data if isinstance(cells[FILE], Sent) else b"")
        if column:
            return hashed(printable(cells[column]).encode())
        return hashed(as_json({name: plain(cell) for name, cell in cells.items()}))


def unusable(problems: Sequence[str]) -> Refused:
    """What is said of a request of which no input can be used.

    >>> str(unusable(["empty text"])), str(unusable(["empty text", "12 is no text"]))
    ('the input cannot be used: empty text', 'no input can be used; the first: empty text')
    """
    one = "the input cannot be used:" if len(problems) == 1 else "no input can be used; the first:"
    return Refused(422, f"{one} {clean(problems[0])}")


def printable(cell: object) -> str:
    """A cell as text that can be written."""
    return "" if cell is None else str(cell).encode("utf-8", "replace").decode()


def hashed(data: bytes) -> str:
    """The SHA-256 of an input."""
    return f"sha256:{sha256(data).hexdigest()}"


def column_of(name: str) -> str:
    """What a column of a table is called in the log.

    >>> column_of("size"), column_of("score")
    ('size', 'score (given)')
    """
    return f"{name} (given)" if name in COLUMNS else name


def extras(asked: Asked, answer: Answer, likely: Sequence[Row], near: Any) -> Row:
    """The likeliest classes and the nearest training rows, where they were asked for."""
    found: Row = {}
    used = answer.problem is None
    if asked.classes:
        found["classes"] = likely[: asked.classes] if used else None
    if asked.explain:
        by = near or ()
        found["nearest"] = [{"example": e, "distance": d} for e, d in by] if used else None
    return found


def likeliest(rows: Outputs, names: Sequence[str], count: int) -> Iterator[list[Row]]:
    """The classes of the largest p for each row, uncalibrated; one-vs-all they need not sum to one."""
    if not count:
        yield from repeat([], len(rows))
        return
    p = np.exp(np.minimum(rows.log_p, 0)).astype(np.float64)
    order = np.argsort(-p, axis=1, kind="stable")[:, :count]
    largest = np.take_along_axis(p, order, 1)
    for its, values in zip(order.tolist(), largest.tolist(), strict=True):
        yield [{"label": names[k], "p": v} for k, v in zip(its, values, strict=True)]


def as_json(value: Any) -> bytes:
    """JSON in UTF-8; NaN is refused because JSON has none."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )
