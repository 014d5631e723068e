"""Metrics of predictions that come in batches, on one machine or on many: update, merge, compute."""

from dataclasses import replace
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.metrics.arrays import Read, evaluate, outside, predictions
from ova.metrics.measured import Evaluation
from ova.predictions import Predictions, merge
from ova.predictions.sets import TEST, SetName


class Accumulator:
    """What was said of one batch after the other; `compute` gives what `ova.evaluate` gives of all.

    Exactly that: a few numbers of each example are kept, of the matrix only what `keep_probs`
    asks for (class-wise ECE needs it). It can be pickled, and `merge` takes that of another process.

    >>> seen = Accumulator()
    >>> for y, p in ((0, [0.9, 0.1]), (1, [0.2, 0.8]), (1, [0.7, 0.3])):
    ...     seen.update([y], [p])
    >>> seen.compute().value("accuracy")
    0.6666666666666666
    """

    def __init__(
        self, *, labels: Any = None, normalised: bool = True, keep_probs: bool = False
    ) -> None:
        self.how, self.keep_probs = Read(labels, normalised), keep_probs
        self.parts: dict[str, list[Predictions]] = {}

    def update(self, y_true: Any, probs: Any = None) -> None:
        """Take a batch of targets with their probabilities."""
        self._add(TEST, predictions(y_true, probs, self.how))

    def update_outside(self, probs: Any, name: str = "outside") -> None:
        """Take a batch of probabilities for examples of none of the classes."""
        self._add(SetName.ood(name), outside(probs, self.how))

    def merge(self, other: "Accumulator") -> "Accumulator":
        """Take everything that another has seen; gives this one."""
        for name, parts in other.parts.items():
            for part in parts:
                self._add(name, part)
        return self

    def reset(self) -> None:
        """Forget everything."""
        self.parts.clear()

    def compute(self, *, bootstrap: int = 0, seed: int = 0) -> Evaluation:
        """Every metric of all that was seen."""
        if TEST not in self.parts:
            raise BadInput("nothing was seen yet: update(y_true, probs) comes first")
        sets = {name: whole(parts) for name, parts in self.parts.items()}
        return evaluate(sets, bootstrap=bootstrap, seed=seed)

    def __len__(self) -> int:
        return sum(len(part) for parts in self.parts.values() for part in parts)

    def __repr__(self) -> str:
        return f"Accumulator of {len(self)} predictions"

    def _add(self, name: str, p: Predictions) -> None:
        """Keep a batch; all must be of one model."""
        held = self.parts.setdefault(name, [])
        first = next((part for parts in self.parts.values() for part in parts), p)
        if (first.classes, first.normalised) != (p.classes, p.normalised):
            raise BadInput(
                f"a batch has {p.classes} classes and normalised={p.normalised}, those before have "
                f"{first.classes} and {first.normalised}"
            )
        if len(p):
            held.append(p if self.keep_probs else replace(p, probs=None))


def whole(parts: list[Predictions]) -> Predictions:
    """The batches as one set, in the order in which they came."""
    starts = np.cumsum([0, *map(len, parts)])
    numbered = (
        replace(part, id=np.arange(start, start + len(part)))
        for start, part in zip(starts, parts, strict=False)
    )
    return merge(list(numbered))
