"""What a score is: one number per example, higher for inputs that belong to a class."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ova.predictions import Predictions
from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.training import Training

Column = Callable[[Predictions], Array | None]


class Fitted(Protocol):
    """A score with all that it has learned: a dataclass of arrays and numbers."""

    def __call__(self, rows: Outputs) -> Array:
        """One value per row, higher for inside; the rows of one block at a time."""
        ...


def always(training: Training) -> None:
    """No reason to leave a score out."""


@dataclass(frozen=True, kw_only=True)
class Score:
    """How a score is fitted, what it needs for that and what it says of itself."""

    about: str
    needs: tuple[str, ...]  # of NEEDS
    fit: Callable[[Training], Fitted]
    restore: Callable[..., Fitted]  # from its fields, by name
    column: Column | None = None  # where predictions have it without a fit
    joins: tuple[str, ...] = ()  # scores whose values it is made of; they come before it
    unless: Callable[[Training], str | None] = always  # why it is left out if nobody asks for it


# What a score may need, and how its absence is said.
NEEDS = {
    "probabilities": "probabilities or logits",
    "logits": "logits",
    "features": "features",
    "targets": "targets of the training rows",
    "head": "an affine head: weight and bias, or training features and logits enough to find them",
    "held": "held-out inside rows",
}


@dataclass(frozen=True)
class Read:
    """The fitted score that is a column of predictions: nothing to learn."""

    column: Column

    def __call__(self, rows: Outputs) -> Array:
        values = None if rows.said is None else self.column(rows.said)
        assert values is not None, "what the score needs was checked"
        return values


def free(about: str, needs: str, column: Column) -> Score:
    """A score that is read off probabilities or logits without a fit."""

    def read(*_: Any, **__: Any) -> Fitted:
        return Read(column)

    return Score(about=about, needs=(needs,), fit=read, restore=read, column=column)


def negated(column: str) -> Column:
    """A column that is lower for inside, turned round."""

    def of(p: Predictions) -> Array | None:
        values = getattr(p, column)
        return None if values is None else -values

    return of
