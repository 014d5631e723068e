"""What is typical of a group: its words, its columns or its pictures, and the classes that are near."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from ova.predictions.columns import Array
from ova.userdata.kind import Preparation
from ova.userdata.tables import Columns
from ova.userdata.texts import Tokens

WORD = re.compile(r"[^\W_]{2,}")
WORDS, NEAREST, PICTURES, SIDE = 6, 3, 8, 64  # of a group; pixels of a picture
FAR = 0.5  # standard deviations by which a column must stand out
OFTEN = (
    0.5  # share of a group's rows that a word of a table must have, and twice that of the others
)

Members = Sequence[Array]  # the rows of each group


def words(texts: Sequence[str], members: Members) -> list[list[str]]:
    """The words of each group that weigh most: often here, in several texts, rarely elsewhere.

    w = n_here / n_group log(1 + A / n_everywhere), A = words of a group on average.

    This is class-based TF-IDF.

    >>> words(["my card is lost", "lost card", "is it sunny", "is it rain"], [[0, 1], [2, 3]])
    [['card', 'lost'], ['it', 'is']]
    """
    split = [WORD.findall(str(text).lower()) for text in texts]
    counts = [Counter(word for row in rows for word in split[row]) for rows in members]
    texts_with = [Counter(word for row in rows for word in {*split[row]}) for rows in members]
    everywhere: Counter[str] = sum(counts, Counter())
    average = everywhere.total() / max(1, len(members))

    def weight(count: Counter[str], word: str) -> float:
        return float(count[word] / count.total() * np.log1p(average / everywhere[word]))

    found = []
    for count, several in zip(counts, texts_with, strict=True):
        common = [word for word in count if several[word] > 1] or [*count]
        found.append(sorted(common, key=lambda word: (-weight(count, word), word))[:WORDS])
    return found


def columns(table: Columns, x: Tensor, members: Members) -> list[list[str]]:
    """The columns of each group that stand out from the rows that the model was trained on."""
    standard = table.prepare(x)[:, : table.width].numpy()
    raw, names, place = x.numpy(), [], 0
    for column in table.columns:
        names += [(column.name, word) for word in column.words] or [(column.name, "")]
        place += column.width
    found = []
    for rows in members:
        far = {}
        for k, (name, word) in enumerate(names):
            mean = float(standard[rows, k].mean())
            if word or any(name == other and w for other, w in names):
                share, before = float(raw[rows, k].mean()), table.mean[k]
                if share >= OFTEN and share >= 2 * before:
                    far[f"{name} is {word or 'empty'} ({share:.0%})"] = mean
            elif abs(mean) >= FAR:
                value = np.nanmedian(raw[rows, k])
                far[f"{name} {'high' if mean > 0 else 'low'} (about {value:.4g})"] = abs(mean)
        found.append(sorted(far, key=lambda said: -far[said])[:WORDS])
    return found


def pictures(x: Tensor, rows: Array) -> list[bytes]:
    """The pictures of some rows, small, as PNG."""
    import cv2

    found = []
    for image in x.numpy()[rows[:PICTURES]]:
        square = image.transpose(1, 2, 0)[:, :, ::-1]
        if square.shape[0] > SIDE:
            square = cv2.resize(square, (SIDE, SIDE), interpolation=cv2.INTER_AREA)
        found.append(cv2.imencode(".png", np.ascontiguousarray(square))[1].tobytes())
    return found


def near(z: Array, members: Members, classes: Sequence[str]) -> list[list[str]]:
    """The classes with the largest mean logit in each group."""
    return [
        [classes[k] for k in np.argsort(-z[rows].mean(0), kind="stable")[:NEAREST]]
        for rows in members
    ]


def typical(
    prepared: Preparation, cells: Mapping[str, Sequence[Any]], x: Tensor, members: Members
) -> list[list[str]]:
    """The words or columns that tell a group, by the kind of the data; of images there are none."""
    if isinstance(prepared, Tokens):
        return words([str(cell) for cell in cells[prepared.column]], members)
    if isinstance(prepared, Columns):
        return columns(prepared, x, members)
    return [[] for _ in members]


def inputs(prepared: Preparation, cells: Mapping[str, Sequence[Any]]) -> list[str]:
    """Each input in a line: its text, the name of its file, or its columns."""
    if prepared.column:
        return [str(cell) for cell in cells[prepared.column]]
    rows = zip(*cells.values(), strict=True)
    return [
        ", ".join(f"{name} {value}" for name, value in zip(cells, row, strict=True)) for row in rows
    ]
