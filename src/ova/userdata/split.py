"""Held-out splits of the user's rows: training, validation for early stopping, calibration, test."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ova.errors import BadInput
from ova.predictions import NONE

GOLDEN = (5**0.5 - 1) / 2
# Share and largest number of each held-out part; the rest is for training.
HELD = {"validation": (0.10, 10_000), "calibration": (0.15, 20_000), "test": (0.15, 20_000)}
Parts = Mapping[str, list[int]]


@dataclass(frozen=True)
class Split:
    """Rows of each part, and what the user should know about it."""

    parts: Parts
    notes: tuple[str, ...]


def split(y: Sequence[int], keys: Sequence[bytes], seed: int, held: Sequence[str]) -> Split:
    """Parts with the proportions of the classes; rows with the same input stay together.

    Rows are put in order of their class, at random within it, and row i goes where the fractional
    part of u + i g falls (g the golden section): every stretch of rows, and so every class, is
    divided in proportion, and every row has the same chance for each part. A class keeps one
    row for training at least.
    """
    groups: dict[bytes, list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    first = [rows[0] for rows in groups.values()]
    draw = np.random.default_rng(seed)
    order = draw.permutation(len(first))
    order = order[np.argsort([y[first[i]] for i in order], kind="stable")]
    at = (draw.random() + np.arange(len(order)) * GOLDEN) % 1
    names, borders = ["train", *held], np.cumsum(shares(len(order), held))
    members, places = list(groups.values()), np.searchsorted(borders, at, side="right")
    parts: dict[str, list[int]] = {name: [] for name in names}
    for group, place in zip(order, places, strict=True):
        parts[names[place]] += members[group]
    learned = {y[row] for row in parts["train"]}
    for name in held:  # a class that would never be trained gives up a held-out row
        for row in list(parts[name]):
            if y[row] not in learned:
                group = groups[keys[row]]
                parts[name] = [other for other in parts[name] if other not in group]
                parts["train"] += group
                learned |= {y[other] for other in group}
    lacking = [name for name, rows in parts.items() if not rows]
    if lacking:
        raise BadInput(f"{len(y)} rows are too few: nothing is left for {', '.join(lacking)}")
    return Split({name: sorted(rows) for name, rows in parts.items()}, notes(y, groups, parts))


def shares(n: int, held: Sequence[str]) -> list[float]:
    """Shares of all parts but the last, training first."""
    wanted = [min(HELD[name][0], HELD[name][1] / n) for name in held]
    return [1 - sum(wanted), *wanted[:-1]]


def notes(y: Sequence[int], groups: Mapping[bytes, list[int]], parts: Parts) -> tuple[str, ...]:
    """What was found about repeated and contradicting rows."""
    repeated = sum(len(rows) - 1 for rows in groups.values())
    contrary = sum(len({y[row] for row in rows}) > 1 for rows in groups.values())
    found = []
    if repeated:
        found.append(f"{repeated} rows repeat an earlier input; copies were kept in the same part")
    if contrary:
        found.append(f"{contrary} inputs have more than one label; no model can get both right")
    counts = Counter(y[row] for rows in parts.values() for row in rows if y[row] != NONE)
    alone = sum(count == 1 for count in counts.values())
    if alone:
        found.append(
            f"{alone} classes have one example, which is trained on: nothing is known about how "
            "well they are recognised"
        )
    return tuple(found)
