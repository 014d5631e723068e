"""A threshold for each class or group: one promise that holds for every one of them at once.

The theorem and its proof are in docs/threshold.md, under "For every class".
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtr

from ova.errors import BadInput
from ova.posthoc.certificates import Floats, Truths, Walks, passed, raised, why_not_accurate
from ova.posthoc.independent import Rows
from ova.posthoc.threshold import Promise, Threshold

CLASS, GROUP = "class", "group"
Key = Any  # the number of a class, or a group: a whole number or a text
Part = tuple[Floats, Truths]  # its confidences, and whether each answer was right
SHOWN = 20  # refused classes that are named in words


@dataclass(frozen=True)
class EachClass(Promise):
    """That an accuracy is wanted for every class at once, the rare ones pooled or refused."""

    pool: bool = False

    def __post_init__(self) -> None:
        if self.coverage is not None or self.leak is not None:
            raise BadInput(
                "only an accuracy can be promised for every class; leave out coverage and leak"
            )


@dataclass(frozen=True)
class Thresholds:
    """Answer when the confidence is strictly above the value of the class that would be answered.

    >>> rng = np.random.default_rng(0)
    >>> p = np.repeat([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], [500, 400, 30], axis=0)
    >>> from ova.predictions import Predictions
    >>> said = Predictions.from_probs(p, p.argmax(1), normalised=True)
    >>> from ova.posthoc.threshold import fit_threshold
    >>> print(fit_threshold(said, accuracy=0.99, per="class"))
    answer by class: accuracy >= 0.99 with certainty 0.95 for each of 2 of 3 classes (930 examples, 96.8 % answered, 100.0 % of them right)
    never 2: cannot be promised with 30 examples, 299 would be needed even if every answer were right
    """

    promise: Promise  # of each part
    per: str  # "class" or "group"
    parts: Mapping[Key, Threshold]
    pooled: tuple[
        Key, ...
    ] = ()  # rare ones that share a threshold, with a promise for all together

    @property
    def promised(self) -> bool:
        """Whether the promise stands for any part; the others are never answered."""
        return any(part.promised for part in self.parts.values())

    @property
    def why_not(self) -> str:
        """Why nothing could be promised for any part; empty where there is a promise."""
        return "" if self.promised else f"cannot be promised for any {self.per}"

    @property
    def refused(self) -> Mapping[Key, str]:
        """Why nothing is promised, for each part that is never answered."""
        return {key: part.why_not for key, part in self.parts.items() if not part.promised}

    @property
    def distinct(self) -> list[Threshold]:
        """Each threshold once, that of the pooled among them."""
        own = [part for key, part in self.parts.items() if key not in self.pooled]
        return [*own, *(self.parts[key] for key in self.pooled[:1])]

    @property
    def n(self) -> int:
        """Independent examples that the promises rest on, all together."""
        return sum(part.n for part in self.distinct)

    @property
    def none(self) -> int:
        """Of these, examples of none of the classes."""
        return sum(part.none for part in self.distinct)

    @property
    def answered(self) -> float:
        """The share of all examples that is answered."""
        return sum(part.n * part.answered for part in self.distinct) / self.n

    @property
    def accuracy(self) -> float | None:
        """Measured among all that are answered; None when none is."""
        kept = [(part.n * part.answered, part.accuracy) for part in self.distinct]
        total = sum(count for count, _ in kept)
        return sum(count * (share or 0) for count, share in kept) / total if total else None

    @property
    def value(self) -> float:
        """The lowest of the values: below it nothing is answered, whatever its class."""
        return min(part.value for part in self.parts.values())

    def values(self, of: ArrayLike) -> Floats:
        """The value for each input by its class or group; infinity for one that is not known."""
        keys = np.asarray(of)
        names, place = np.unique(keys, return_inverse=True)
        known = [self.parts.get(name) for name in names.tolist()]
        values = np.array([math.inf if part is None else part.value for part in known])
        return np.asarray(values[place], np.float64) if len(names) else np.empty(0)

    def answers(self, confidence: ArrayLike, of: ArrayLike | None = None) -> Truths:
        """Which inputs to answer, by their confidences and their classes (predicted) or groups."""
        if of is None:
            raise BadInput(f"each {self.per} has a threshold: say the {self.per} of each input")
        c, keys = np.asarray(confidence, dtype=np.float64), np.asarray(of)
        if c.shape != keys.shape:
            raise BadInput(
                f"{c.size} confidences but {keys.size} of a {self.per}; one each is needed"
            )
        return np.asarray(c > self.values(keys))

    def lines(self, names: Sequence[str] | None = None) -> Iterator[str]:
        """The promise in words, a line for all and one for each part that is never answered."""

        def called(key: Any) -> str:
            return str(key) if names is None else names[key]

        right = "" if self.accuracy is None else f", {self.accuracy:.1%} of them right"
        kept = sum(part.promised for part in self.parts.values())
        what = "classes" if self.per == CLASS else "groups"
        each = f"each of {kept} of {len(self.parts)} {what}"
        seen = f"{self.n} examples, {self.answered:.1%} answered{right}".replace("%", " %")
        yield f"answer by {self.per}: {self.promise} for {each} ({seen})"
        if self.pooled:
            shared = ", ".join(map(called, self.pooled))
            yield f"together, being rare: {shared}: {self.parts[self.pooled[0]]}"
        alone = [(k, why) for k, why in self.refused.items() if k not in self.pooled]
        yield from (f"never {called(key)}: {why}" for key, why in alone[:SHOWN])
        if len(alone) > SHOWN:
            yield f"never {len(alone) - SHOWN} more {what}, which `refused` names"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        rows = [{"of": key, "threshold": part.to_json()} for key, part in self.parts.items()]
        about = {"promise": asdict(self.promise), "per": self.per, "pooled": list(self.pooled)}
        return about | {"parts": rows}

    @staticmethod
    def from_json(row: Mapping[str, Any]) -> "Thresholds":
        """What `to_json` wrote."""
        try:
            parts = {part["of"]: Threshold.from_json(part["threshold"]) for part in row["parts"]}
            promise, pooled = Promise(**row["promise"]), tuple(row["pooled"])
            if row["per"] not in (CLASS, GROUP) or not set(pooled) <= set(parts):
                raise ValueError("not of classes or groups that it has")
            return Thresholds(promise, row["per"], parts, pooled)
        except (KeyError, TypeError, ValueError) as error:
            raise BadInput(f"not thresholds written by ova: {error}") from error


@dataclass(frozen=True)
class Held:
    """The held-out examples, each with the class it is answered as or the group it is of."""

    c: Floats
    right: Truths
    none: Truths
    keys: NDArray[Any]

    def take(self, rows: Rows | Truths) -> "Held":
        """Some of them."""
        return Held(self.c[rows], self.right[rows], self.none[rows], self.keys[rows])


def keys_of(per: Any, predictions: Any, count: int) -> tuple[NDArray[Any], Sequence[Key], str]:
    """The class or group of each example, those that are known beforehand, and which of both it is."""
    if isinstance(per, str):
        if per != CLASS:
            raise BadInput(
                f"`per` is 'class' or a column with a group for each example, not {per!r}"
            )
        if not hasattr(predictions, "prediction"):
            raise BadInput(
                "per='class' needs Predictions; of a pair give the predicted classes as `per`"
            )
        known = range(predictions.classes or 0)
        return np.asarray(predictions.prediction), known, CLASS
    keys = np.asarray(per)
    if keys.shape != (count,):
        raise BadInput(
            f"{count} examples but `per` is of shape {keys.shape}; a group for each is needed"
        )
    if keys.dtype.kind not in "biuU":
        raise BadInput(f"`per` must have whole numbers or texts, not {keys.dtype}")
    return keys, (), GROUP


def fit_per(
    held: Held, promise: Promise, known: Sequence[Key], per: str, *, pool: bool
) -> Thresholds:
    """A threshold for each key in `known` or among the examples; `promise` is an accuracy."""
    a, delta = promise.accuracy, 1 - promise.certainty
    assert a is not None
    names, place = np.unique(held.keys, return_inverse=True)
    numbers = dict(zip(names.tolist(), range(len(names)), strict=True))
    keys = list(dict.fromkeys([*known, *numbers]))
    rows = np.split(np.argsort(place, kind="stable"), np.cumsum(np.bincount(place))[:-1])
    empty = np.empty(0, np.int64)
    own = [rows[numbers[key]] if key in numbers else empty for key in keys]
    rare = pooled([len(r) for r in own], a, delta) if pool else []
    parts = [r for k, r in enumerate(own) if k not in rare]
    parts += [np.sort(np.concatenate([own[k] for k in rare]))] if rare else []
    of = [held.take(r) for r in parts]
    found = certified([(part.c, part.right) for part in of], a, delta)
    made = [threshold(part, promise, *said) for part, said in zip(of, found, strict=True)]
    alone = iter(made)
    shared = dict.fromkeys(rare, made[-1])
    parts_of = {key: shared[k] if k in shared else next(alone) for k, key in enumerate(keys)}
    return Thresholds(promise, per, parts_of, tuple(keys[k] for k in sorted(rare)))


def threshold(part: Held, promise: Promise, value: float, why_not: str) -> Threshold:
    """The threshold of a part, with what was seen on its examples."""
    above = part.c > value
    return Threshold(
        value=value,
        promise=promise,
        n=len(part.c),
        answered=float(above.mean()) if len(above) else 0.0,
        accuracy=float(part.right[above].mean()) if above.any() else None,
        why_not=why_not,
        none=int(part.none.sum()),
    )


def certified(parts: Sequence[Part], a: float, delta: float) -> list[tuple[float, str]]:
    """For each part the lowest value that keeps the promise, or infinity and the reason.

    A part of which everything may be answered needs its share of delta no longer, and leaves it to
    the others. All that decides about shares is the number of examples, and who is done.
    """
    least = bdtr(0, [len(c) for c, _ in parts], 1 - a)  # P of no error, were the accuracy just a
    order: list[int] = np.argsort(least, kind="stable").tolist()  # the largest part first
    first = in_line(least[order], delta)
    entry = entries(least, delta, first)
    found: dict[int, Floats] = {}
    done: set[int] = set()
    while True:
        left = [k for k in order if k not in done]
        line = left[: in_line(least[left], delta)]
        level = delta / max(1, len(line))
        walks = {k: raised(len(parts[k][0]), a, entry[k], level) for k in line}
        found |= {k: passed(*parts[k], walks[k]) for k in line}
        now = {k for k in line if -math.inf in passed(*parts[k], walks[k][:1])}
        done |= now
        if not now:
            break
    next_level = delta / (len(line) + 1)

    def said(k: int) -> tuple[float, str]:
        if k in found and len(found[k]):
            return float(found[k].min()), ""
        failed: Walks | None = walks.get(k)
        return math.inf, why_not_accurate(*parts[k], a, level if failed else next_level, failed)

    return [said(k) for k in range(len(parts))]


def in_line(least: Floats, delta: float) -> int:
    """How many of the parts, the largest first, could all be certified at once with equal shares.

    >>> in_line(0.99 ** np.array([1000, 500, 420, 20]), 0.05)
    3
    """
    fits = np.flatnonzero(least <= delta / np.arange(1, len(least) + 1))
    return int(fits[-1]) + 1 if len(fits) else 0


def entries(least: Floats, delta: float, most: int) -> Floats:
    """The lowest level that each part can ever have: by it, where its walks begin is decided.

    A walk that began elsewhere at each level could lose at a higher one what it had at a lower.
    """
    levels = delta / np.arange(1, max(1, most) + 1)
    count = np.searchsorted(-levels, -least, side="right")
    return np.asarray(levels[np.maximum(count, 1) - 1])


def pooled(sizes: Sequence[int], a: float, delta: float) -> list[int]:
    """The fewest of the smallest parts that must be one, so that every part could be certified."""
    order: list[int] = np.argsort(sizes, kind="stable").tolist()
    for count in range(len(sizes) + 1):
        alone = [sizes[k] for k in order[count:]]
        parts = np.array([*alone, *([sum(sizes[k] for k in order[:count])] if count else [])])
        if count != 1 and in_line(np.sort(bdtr(0, parts, 1 - a)), delta) == len(parts):
            return sorted(order[:count])
    return sorted(order)
