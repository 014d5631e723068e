"""Held-out splits of the user's rows: training, validation for early stopping, calibration, test."""

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np

from ova.errors import BadInput
from ova.posthoc.independent import numbered, one_of_each

# Share and largest number of each held-out part; the rest is for training.
HELD = {"validation": (0.10, 10_000), "calibration": (0.15, 20_000), "test": (0.15, 20_000)}
RULE = "by lot, each input once"  # part of what makes data other data: see `gather.sources_of`


def split(groups: Sequence[Hashable], seed: int, held: Sequence[str]) -> dict[str, list[int]]:
    """The rows of each part: whole groups to train on, of every other group one row, both by lot.

    The lot looks at no label. So, given what is trained on, the held-out rows are independent draws
    of what is to come, also of its rare classes: one that has no row to train on is met among them
    as often as it will be met later. A split in proportion would hide that.
    """
    unit = numbered(groups)
    count = int(unit.max(initial=-1)) + 1
    sizes = [round(min(HELD[name][0] * count, HELD[name][1])) for name in held]
    place = np.empty(count, np.int64)
    order = np.random.default_rng(seed).permutation(count)
    place[order] = np.searchsorted(np.cumsum(sizes), np.arange(count), side="right")
    part, lone = place[unit], one_of_each(unit, seed)
    parts = {"train": np.flatnonzero(part == len(held)).tolist()}
    parts |= {name: lone[part[lone] == k].tolist() for k, name in enumerate(held)}
    lacking = [name for name, rows in parts.items() if not rows]
    if lacking:
        what = "rows" if count == len(unit) else "independent rows"
        raise BadInput(f"{count} {what} are too few: nothing is left for {', '.join(lacking)}")
    return parts


def notes_on(rows: Sequence[tuple[bytes, Hashable, str | None]]) -> list[str]:
    """What was found about inputs, groups and labels of the rows that repeat or contradict."""
    keys, groups, _ = zip(*rows, strict=True)
    grouped, notes = keys != groups, []
    again, units = len(rows) - len(set(keys)), len(set(groups))
    rule = "in one part, and one of them, drawn by lot, where they are held out"
    if grouped:
        notes.append(f"{len(rows)} rows are {units} groups; the rows of a group were kept {rule}")
    elif again:
        notes.append(f"{again} rows repeat an earlier input; copies were kept {rule}")
    crossing = Counter(key for key, _ in {(key, group) for key, group, _ in rows})
    if several := sum(count > 1 for count in crossing.values()):
        notes.append(f"{several} inputs are in more than one group; groups count as independent")
    labels = Counter(key for key, _ in {(key, label) for key, _, label in rows})
    if contrary := sum(count > 1 for count in labels.values()):
        notes.append(f"{contrary} inputs have more than one label; no model can get both right")
    return notes
