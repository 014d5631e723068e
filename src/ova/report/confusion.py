"""Which classes a model confuses: the pairs, and an ordered map that stays readable with many classes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array
from ova.report.inspection import Confusion
from ova.report.markup import Markup, el, join, table
from ova.report.numbers import percent

PAIRS = 15  # that are listed at once; the others can be unfolded
MOST = 40  # classes that the map has room for: those with the most mistakes
CELL, LETTER, FONT = 18, 6.2, 11  # pixels: a cell, about the width of a letter, its height
LONGEST = 22  # letters of a name on the map
NUMBERS = 14  # classes up to which the cells have their numbers written in them


@dataclass(frozen=True)
class Pair:
    """Rows of one class that are taken for another."""

    target: int
    guess: int
    rows: int
    answered: int  # of them, which the threshold lets through


def counts(found: Confusion, classes: int) -> Array:
    """Rows of each class (down) by best guess (across)."""
    cells = np.bincount(found.target * classes + found.guess, minlength=classes**2)
    return np.asarray(cells.reshape(classes, classes))


def pairs(found: Confusion, classes: int) -> list[Pair]:
    """The pairs of classes that are confused, the most frequent first.

    >>> y, k = np.array([0, 0, 1, 2]), np.array([1, 1, 1, 0])
    >>> pairs(Confusion(target=y, guess=k, answered=k == 1), 3)
    [Pair(target=0, guess=1, rows=2, answered=2), Pair(target=2, guess=0, rows=1, answered=0)]
    """
    all_rows = counts(found, classes)
    kept = Confusion(
        target=found.target[found.answered],
        guess=found.guess[found.answered],
        answered=found.answered[found.answered],
    )
    through = counts(kept, classes)
    wrong = np.argwhere(all_rows * (1 - np.eye(classes, dtype=int)))
    listed = [Pair(y, k, int(all_rows[y, k]), int(through[y, k])) for y, k in wrong.tolist()]
    return sorted(listed, key=lambda pair: (-pair.rows, -pair.answered, pair.target, pair.guess))


def order(cells: Array) -> list[int]:
    """The classes so that those that are confused stand together; at most MOST, those with most mistakes.

    >>> cells = np.diag([5, 5, 5, 5])
    >>> cells[0, 3] = cells[1, 2] = 4
    >>> order(cells) in ([0, 3, 1, 2], [0, 3, 2, 1], [3, 0, 1, 2], [1, 2, 0, 3], [2, 1, 0, 3])
    True
    """
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    wrong = cells - np.diag(np.diag(cells))
    busy = np.argsort(-(wrong.sum(0) + wrong.sum(1)), kind="stable")[:MOST]
    some = np.sort(busy)
    if len(some) < 3:
        return [int(k) for k in some]
    rate = wrong / np.maximum(cells.sum(1, keepdims=True), 1)
    near = (rate + rate.T)[np.ix_(some, some)]
    apart = 1 / (near + 1e-3)
    np.fill_diagonal(apart, 0)
    leaves = leaves_list(linkage(squareform(apart, checks=False), "average", optimal_ordering=True))
    return [int(some[i]) for i in leaves]


def section(found: Confusion, names: Sequence[str]) -> Markup:
    """The pairs, and the map."""
    cells, wrong = counts(found, len(names)), pairs(found, len(names))
    if not wrong:
        said = (
            f"None: its best guess is right for all {len(found.target):,} test rows of the classes."
        )
        return el("p", said)
    return join(
        listing(wrong[:PAIRS], cells, names),
        el(
            "details",
            el("summary", f"The other {len(wrong) - PAIRS:,} pairs"),
            listing(wrong[PAIRS:], cells, names),
            class_="more",
        )
        if len(wrong) > PAIRS
        else None,
        picture(cells, names),
    )


def listing(some: Sequence[Pair], cells: Array, names: Sequence[str]) -> Markup:
    """A row per pair."""
    body = [
        [
            names[pair.target],
            names[pair.guess],
            f"{pair.rows:,}",
            percent(pair.rows / int(cells[pair.target].sum())),
            f"{pair.answered:,}",
        ]
        for pair in some
    ]
    head = ["class", "taken for", "test rows", "of the class", "still answered"]
    caption = "Pairs that are confused, before anything is refused; the last column is what the threshold lets through"
    return table(head, body, caption, "pairs")


def picture(cells: Array, names: Sequence[str]) -> Markup:
    """The map: a row per class, a column per best guess, the darker the more of the row."""
    shown = order(cells)
    called = [short(names[k]) for k in shown]
    edge = max(len(name) for name in called) * LETTER + 10
    size = edge + CELL * len(shown) + 4
    parts = [
        box(cells, names, shown, (i, j), edge) for i in range(len(shown)) for j in range(len(shown))
    ]
    labels = [
        join(
            el("text", name, x=f"{edge - 6:.0f}", y=f"{edge + CELL * (i + 0.72):.1f}", text_anchor="end"),
            el("text", name, transform=f"translate({edge + CELL * (i + 0.72):.1f} {edge - 6:.0f}) rotate(-90)"),
        )
        for i, name in enumerate(called)
    ]  # fmt: skip
    left = len(names) - len(shown)
    only = (
        f" The {len(shown)} classes with the most mistakes; the other {left} have no more."
        * bool(left)
    )
    caption = (
        "A row for each class, a column for each best guess. Confused classes stand together; the darker "
        f"a cell, the larger its share of the row: green is right, orange is wrong.{only}"
    )
    svg = el(
        "svg", labels, parts, viewBox=f"0 0 {size:.0f} {size:.0f}", width=f"{size:.0f}",
        height=f"{size:.0f}", font_size=FONT, role="img", aria_label=caption,
    )  # fmt: skip
    box_ = el("div", svg, class_="scroll confusion", tabindex="0", role="region", aria_label="map")
    return el("figure", el("figcaption", el("h4", "The map"), el("p", caption)), box_)


def box(
    cells: Array, names: Sequence[str], shown: Sequence[int], at: tuple[int, int], edge: float
) -> Markup | None:
    """One cell, with its numbers for who points at it."""
    (i, j), (y, k) = at, (shown[at[0]], shown[at[1]])
    rows, all_rows = int(cells[y, k]), int(cells[y].sum())
    x, top = edge + CELL * j, edge + CELL * i
    if not rows:
        return None
    share = rows / all_rows
    about = el("title", f"{names[y]} taken for {names[k]}: {rows:,} of {all_rows:,} rows")
    rect = el(
        "rect", about, x=f"{x:.0f}", y=f"{top:.0f}", width=CELL - 1, height=CELL - 1,
        class_="right" if y == k else "wrong", fill_opacity=f"{0.12 + 0.88 * share**0.5:.2f}",
    )  # fmt: skip
    if len(shown) > NUMBERS or rows > 999:
        return rect
    middle = {"x": f"{x + (CELL - 1) / 2:.1f}", "y": f"{top + CELL * 0.68:.1f}"}
    return join(rect, el("text", rows, text_anchor="middle", class_="count", font_size=9, **middle))


def short(name: str) -> str:
    """A name that fits beside the map.

    >>> short("a" * 30)
    'aaaaaaaaaaaaaaaaaaaaa…'
    """
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"
