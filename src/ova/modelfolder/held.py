"""What `ova predict --sets`, `--fdr` and `ova monitor` need of the rows that carry the promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ova.errors import BadInput
from ova.posthoc.certificates import Counts, Floats
from ova.posthoc.sets import Sets, fit_sets
from ova.predictions import NONE, Predictions

COVERAGE = 0.95  # of the sets, for every class


@dataclass(frozen=True, eq=False)
class Answered:
    """The score and the best guess of every row, those of none of the classes too."""

    scores: Floats
    classes: Counts

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {"scores": self.scores.tolist(), "classes": self.classes.tolist()}

    @staticmethod
    def from_json(row: Mapping[str, Any], classes: int) -> "Answered":
        """What `to_json` wrote."""
        found = Answered(np.array(row["scores"], np.float64), np.array(row["classes"], np.int64))
        fits = found.scores.shape == found.classes.shape and found.scores.ndim == 1
        if not fits or not np.isin(found.classes, np.arange(classes)).all():
            raise BadInput(
                f"the rows that carry the promise are not answered with {classes} classes"
            )
        return found


@dataclass(frozen=True, eq=False)
class Held:
    """Sets fitted on those rows, and the scores of those of the classes, the lowest first."""

    sets: Sets | str  # or the reason why there are none
    scores: Floats
    answered: Answered | None = None  # earlier versions did not keep it

    def to_json(self) -> dict[str, Any]:
        """Plain values for JSON."""
        sets = {"why_not": self.sets} if isinstance(self.sets, str) else self.sets.to_json()
        all_ = None if self.answered is None else self.answered.to_json()
        return {"sets": sets, "scores": self.scores.tolist(), "answered": all_}

    @staticmethod
    def from_json(row: Mapping[str, Any], classes: int) -> "Held":
        """What `to_json` wrote."""
        about, scores = row["sets"], np.array(row["scores"], np.float64)
        kept = row.get("answered")
        answered = None if kept is None else Answered.from_json(kept, classes)
        if scores.ndim != 1 or not np.isfinite(scores).all():
            raise BadInput(
                "the scores of the rows that carry the promise are not a list of numbers"
            )
        if "why_not" in about:
            return Held(str(about["why_not"]), scores, answered)
        sets = Sets.from_json(about)
        if len(sets.n) != classes:
            raise BadInput(f"these are not the sets of {classes} classes")
        return Held(sets, scores, answered)


def held(said: Predictions, judged: Predictions) -> Held:
    """Of the same rows what the model says, and with the score that decides for the confidence."""
    score = judged.confidence.astype(np.float64)
    scores = np.sort(score[judged.target != NONE])
    answered = Answered(score, judged.prediction.astype(np.int64))
    if said.probs is None:
        return Held(
            "the rows that carry the promise are too many to keep their probabilities",
            scores,
            answered,
        )
    return Held(fit_sets(said, COVERAGE), scores, answered)


def tried(sets: Sets, p: Predictions) -> str:
    """What the sets are on rows that they have not seen: their size, and what they hold.

    >>> sets = fit_sets((np.linspace(0.1, 0.9, 40).repeat(2).reshape(40, 2), np.arange(40) % 2), 0.9)
    >>> rows = [[0.9, 0.1], [0.0, 0.8], [0.0, 0.0], [0.9, 0.9]]
    >>> p = Predictions.from_probs(rows, [0, 1, 1, NONE], normalised=False, keep_probs=True)
    >>> tried(sets, p)
    'sets of 1.00 classes, 25.0 % of 4 empty; the right class in 66.7 % of 3, 50.0 % of the class where it is least'
    """
    inside, known = sets.predict(p), p.target != NONE
    size, empty = inside.sum(axis=1).mean(), (inside.sum(axis=1) == 0).mean()
    words = f"sets of {size:.2f} classes, {empty:.1%} of {len(p)} empty"
    if known.any():
        y = p.target[known]
        right = inside[known][np.arange(len(y)), y]
        least = min(right[y == k].mean() for k in np.unique(y))
        words += f"; the right class in {right.mean():.1%} of {len(y)}, {least:.1%} of the class where it is least"
    return words.replace("%", " %")


def sets_of(kept: Held | None) -> Sets:
    """The sets of a model, or the sentence why it has none."""
    if kept is None:
        raise BadInput("an earlier version of ova trained the model, without sets; train it again")
    if isinstance(kept.sets, str):
        raise BadInput(f"the model has no sets: {kept.sets}")
    return kept.sets
