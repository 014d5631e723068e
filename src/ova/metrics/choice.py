"""Which score should decide "none of the above": chosen by evidence, with a reason.

Errors and outsiders are to be refused by one number, so what counts is the area under risk against
coverage (AURC) of both mixed. Without outside rows nothing measures how well a score tells
outsiders, and classes left out of the score in turn mislead; then a joint that answers both is taken
unless inside rows speak against it (`docs/scores.md`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from ova.errors import BadInput
from ova.metrics.resampling import CELLS, Draws
from ova.predictions.columns import Array
from ova.scores import SCORES

PLAIN = "max_p"
JOINTS = ("energy_nearest", "sirc")  # each a confidence and an inside-score; the first there is
DRAWS = Draws(count=200)  # enough for the spread of a difference
SURE = 0.95
FEWEST = 30  # outside rows; of fewer nothing could be seen beyond noise
LARGEST = 3e38  # a number of float32 that no score reaches

Weights = Callable[[], Iterator[Array]]  # blocks of draws: how often each row was drawn


def finite(values: Array) -> Array:
    """Infinities as numbers that rank alike: a threshold is a number between others."""
    return np.clip(values.astype(np.float64), -LARGEST, LARGEST)


@dataclass(frozen=True)
class Choice:
    """The score that was chosen, why, and the area of every score on the rows that decided."""

    score: str
    why: str
    areas: Mapping[str, float]


def choose(
    inside: Mapping[str, Array],
    correct: Array,
    outside: Mapping[str, Array] | None = None,
    draws: Draws = DRAWS,
) -> Choice:
    """The score that refuses best, by its values on held-out rows; `max_p` where nothing beats it.

    `correct` says which answers to the inside rows are right. With outside rows, 30 at least, it is the smallest
    area, if that is smaller than that of `max_p` beyond noise, however many scores were tried; of
    equal ones the simpler. Else it is the smallest of `max_p` and the joints, which were set before.
    Without, the first joint that is not worse on inside rows beyond noise.

    >>> sure = np.linspace(0, 1, 100)
    >>> found = {"max_p": np.cos(9 * sure), "energy": sure}
    >>> choose(found, sure > 0.2, {"max_p": sure, "energy": sure - 0.9}).score
    'energy'
    """
    right = np.asarray(correct, bool)
    if PLAIN not in inside:
        raise BadInput(f"the values of {PLAIN} are missing: every other score is compared with it")
    if not len(right):
        raise BadInput("there are no held-out rows of the classes to choose a score by")
    strange = {n: v for n, v in (outside or {}).items() if len(v) >= FEWEST}
    names = [n for n in (*SCORES, *sorted(inside.keys() - SCORES)) if n in inside]
    if strange:
        names = [n for n in names if n in strange]
    wrong = {n: mixed(inside[n], right, strange.get(n)) for n in names}
    areas = {n: float(area(w, np.ones((1, len(w.wrong))))[0]) for n, w in wrong.items()}
    weights = redrawn(len(right), len(strange.get(PLAIN, ())), draws)
    if strange:
        best = min(names, key=areas.__getitem__)  # the first of equal ones
        return by_area(best, areas, wrong, weights, len(names) - 1)
    return by_rule(areas, wrong, weights)


def by_area(
    best: str,
    areas: Mapping[str, float],
    wrong: "Mapping[str, Mixed]",
    weights: Weights,
    tried: int,
) -> Choice:
    """The best score, if the best of so many would not look as good by luck; else the usual best."""
    said = f"{areas[PLAIN]:.4f} of {PLAIN} (AURC of held-out and outside rows mixed)"
    if best == PLAIN:
        return Choice(PLAIN, f"no score has a smaller area than {said}", areas)
    gain = (areas[PLAIN] - areas[best]) / spread(wrong[PLAIN], wrong[best], weights)
    if gain > NormalDist().inv_cdf(1 - (1 - SURE) / tried):
        return Choice(best, f"area {areas[best]:.4f}, below the {said}", areas)
    other = f"{best} with {areas[best]:.4f}, is not below the"
    # Where nothing is known outside a joint is taken; the little that is known here must not undo that.
    usual = min((n for n in (PLAIN, *JOINTS) if n in areas), key=areas.__getitem__)
    if usual == PLAIN:
        return Choice(PLAIN, f"the best other, {other} {said} beyond noise", areas)
    why = f"area {areas[usual]:.4f}, below the {said}"
    more = "" if best == usual else f"; the best, {other} same beyond noise"
    return Choice(usual, why + more, areas)


def by_rule(areas: Mapping[str, float], wrong: "Mapping[str, Mixed]", weights: Weights) -> Choice:
    """The first joint that answers errors and outsiders and tells errors no worse than `max_p`."""
    worse: list[str] = []
    for joint in (n for n in JOINTS if n in areas):
        said = f"beyond noise (AURC {areas[joint]:.4f}, {PLAIN} {areas[PLAIN]:.4f})"
        loss = (areas[joint] - areas[PLAIN]) / spread(wrong[PLAIN], wrong[joint], weights)
        if loss <= NormalDist().inv_cdf(SURE):
            why = f"it looks at outsiders too and tells errors no worse {said}"
            return Choice(joint, "; ".join([why, *worse]), areas)
        worse.append(f"{joint} tells them worse {said}")
    nothing = "no score that joins a confidence and a distance applies"
    return Choice(PLAIN, "; ".join(worse) or nothing, areas)


@dataclass(frozen=True, eq=False)
class Mixed:
    """Rows from the surest to the least, which of them are wrong, and where equal scores end."""

    order: Array  # of inside rows, then outside rows
    wrong: Array  # in that order
    ends: Array


def mixed(inside: Array, right: Array, outside: Array | None) -> Mixed:
    """Put rows in order by one score; whatever is outside is wrong."""
    o = inside[:0] if outside is None else outside
    values = np.concatenate([inside, o])
    if len(inside) != len(right):
        raise BadInput(f"{len(inside)} values of a score but {len(right)} answers")
    if np.isnan(values).any():
        raise BadInput("a value of a score is NaN")
    order = np.argsort(-values, kind="stable")
    down = values[order]
    ends = np.append(np.flatnonzero(down[1:] != down[:-1]), len(values) - 1)
    return Mixed(order, np.concatenate([~right, np.ones(len(o), bool)])[order], ends)


def area(rows: Mixed, weights: Array) -> Array:
    """The AURC of each draw, exact: `weights` say how often each row is in it.

    Of s equal scores after S rows with E wrong ones the mean risk over their orders adds up to
    e + (E - S e / s) (H(S + s) - H(S)), e of them wrong and H the harmonic numbers.
    """
    w = weights[:, rows.order]
    seen, errors = (np.cumsum(x, axis=1)[:, rows.ends] for x in (w, w * rows.wrong))
    harmonic = np.append(0, np.cumsum(1 / np.arange(1, seen[:, -1].max() + 1)))
    start, before = (np.pad(x[:, :-1], ((0, 0), (1, 0))) for x in (seen, errors))
    size, new = seen - start, errors - before
    share = new / np.maximum(size, 1)
    rise = harmonic[seen.astype(np.int64)] - harmonic[start.astype(np.int64)]
    return np.asarray((new + (before - start * share) * rise).sum(1) / seen[:, -1])


def spread(plain: Mixed, other: Mixed, weights: Weights) -> float:
    """The standard deviation of the difference of two areas, over draws of the same rows."""
    found = [area(other, w) - area(plain, w) for w in weights()]
    return max(float(np.concatenate(found).std()), float(np.finfo(float).tiny))


def redrawn(inside: int, outside: int, draws: Draws) -> Weights:
    """Rows of each kind redrawn apart, the same for every score that asks."""

    def blocks() -> Iterator[Array]:
        generator = np.random.default_rng(draws.seed)
        at_once = max(1, CELLS // (inside + outside))
        for start in range(0, draws.count, at_once):
            height = min(at_once, draws.count - start)
            parts = [generator.multinomial(n, np.full(n, 1 / n), height) for n in (inside, outside) if n]  # fmt: skip
            yield np.concatenate(parts, axis=1).astype(np.float64)

    return blocks
