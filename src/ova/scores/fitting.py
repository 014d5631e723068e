"""Fit scores by one pass over training rows, and apply them to any rows, block by block."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ova.errors import BadInput, pick
from ova.predictions.columns import Array
from ova.scores.outputs import AffineHead, Outputs, stream
from ova.scores.score import NEEDS, Fitted, Score
from ova.scores.table import SCORES
from ova.scores.training import Training, completed, gather, inside, keep_back, known

Batches = Outputs | Iterable[Outputs]
OF_ROWS = ("probabilities", "logits", "features")  # needs that every row must meet when scored


@dataclass(frozen=True, eq=False)
class FittedScores:
    """Scores that are ready: called with rows, they give a value per row and score.

    `left_out` says of every score that does not apply why it does not.
    """

    fitted: Mapping[str, Fitted]  # also those that only a joint needs, each after its parts
    names: tuple[str, ...]
    head: AffineHead | None = None
    width: int | None = None  # of the features
    left_out: Mapping[str, str] = field(default_factory=dict)

    def only(self, name: str) -> "FittedScores":
        """One of the scores, with what it is made of."""
        wanted = {*SCORES[name].joins, name}
        parts = {n: score for n, score in self.fitted.items() if n in wanted}
        return FittedScores(parts, (name,), self.head, self.width)

    def __reduce__(self) -> Any:
        """To be pickled without the functions that read a column, which the table has."""
        kept = {n: None if SCORES[n].column else score for n, score in self.fitted.items()}
        return _whole, (kept, self.names, self.head, self.width, dict(self.left_out))

    def __call__(self, rows: Batches) -> dict[str, Array]:
        """The values of all scores, block by block: memory grows by the values alone."""
        parts: dict[str, list[Array]] = {name: [] for name in self.names}
        for block in stream(rows):
            values = self.of_block(block)
            for name, part in parts.items():
                part.append(values[name])
        return {name: np.concatenate(p) if p else np.zeros(0) for name, p in parts.items()}

    def of_block(self, block: Outputs) -> dict[str, Array]:
        """The values on rows that are few enough to be looked at together."""
        # Afresh: what other scores left on the rows of the caller is not ours.
        rows = replace(completed(block, self.head), values={}, shared={})
        self._check(rows)
        for name, score in self.fitted.items():
            rows.values[name] = score(rows)
        return rows.values

    def _check(self, rows: Outputs) -> None:
        lacking = set(OF_ROWS) - known(rows)
        for name in self.fitted:
            if missing := [NEEDS[need] for need in SCORES[name].needs if need in lacking]:
                raise BadInput(f"the score {name} needs {', '.join(missing)} of every row")
        if self.width is not None and rows.features is not None and rows.f.shape[1] != self.width:
            raise BadInput(
                f"features of {rows.f.shape[1]} numbers; the scores were fitted on {self.width}"
            )


def _whole(kept: Mapping[str, Fitted | None], *rest: Any) -> FittedScores:
    return FittedScores({n: score or SCORES[n].restore() for n, score in kept.items()}, *rest)


def fit(
    train: Batches,
    *,
    held: Batches | Mapping[str, Array] | None = None,
    head: AffineHead | None = None,
    names: Sequence[str] | None = None,
    most: int | None = None,
) -> FittedScores:
    """Fit the named scores, or every score that applies, from training rows seen once, in batches.

    `held` are rows of the classes that the network was not trained on; the scores that are made of
    others take their scale from them, or from the values that these others have of such rows. Without them every tenth training row is kept back for that,
    at most five thousand. Rows of none of the classes are passed over. Scores that look for the nearest
    training rows keep `most` of them, where that is less than they would keep by themselves.

    >>> train = Outputs(logits=[[2.0, 0.0], [0.0, 1.0]], target=[0, 1])
    >>> fit(train, names=["energy"])(train)["energy"].round(3)
    array([2.127, 1.313])
    """
    chosen = {name: pick(SCORES, name, "score") for name in (names or SCORES)}
    parts = {part for score in chosen.values() for part in score.joins}
    table = {name: score for name, score in SCORES.items() if name in {*chosen, *parts}}
    singles = {name: score for name, score in table.items() if not score.joins}
    joints = {name: score for name, score in table.items() if score.joins}
    back: list[Outputs] = []
    rows = keep_back(stream(train), back) if joints and held is None else stream(train)
    training = gather(rows, head, {need for score in table.values() for need in score.needs}, most)
    fitted, left_out = _fit_each(singles, training, asked=names is not None)
    width = len(training.moments.shift) or None
    parts &= fitted.keys()
    if parts:
        some = FittedScores({n: fitted[n] for n in fitted if n in parts}, tuple(parts), head, width)
        training.held = (
            {name: held[name] for name in sorted(parts & held.keys())}
            if isinstance(held, Mapping)
            else some(map(inside, stream(back if held is None else held)))
        )
        training.has |= {"held"} if any(map(len, training.held.values())) else set()
    more, why = _fit_each(joints, training, asked=names is not None)
    ready = {**fitted, **more}
    there = tuple(name for name in chosen if name in ready)
    return FittedScores(ready, there, training.head, width, {**left_out, **why})


def _fit_each(
    scores: Mapping[str, Score], training: Training, *, asked: bool
) -> tuple[dict[str, Fitted], dict[str, str]]:
    fitted: dict[str, Fitted] = {}
    left_out: dict[str, str] = {}
    for name, score in scores.items():
        why = _lacks(score, training) or (not asked and score.unless(training)) or ""
        if not why:
            try:
                fitted[name] = score.fit(training)
                continue
            except BadInput as error:
                why = str(error)
        if asked:
            raise BadInput(f"the score {name} does not apply: {why}")
        left_out[name] = why
    return fitted, left_out


def _lacks(score: Score, training: Training) -> str:
    missing = [NEEDS[need] for need in score.needs if need not in training.has]
    missing = missing or [f"the score {n}" for n in score.joins if n not in training.held]
    return f"it needs {', '.join(missing)}" if missing else ""
