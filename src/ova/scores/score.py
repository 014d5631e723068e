"""What a score is: one number per example, higher for inputs that belong to a class."""

from collections.abc import Callable
from dataclasses import dataclass

from ova.predictions import Predictions
from ova.predictions.columns import Array


@dataclass(frozen=True)
class Score:
    """One number per example, higher for inside; None where the predictions do not have it."""

    of: Callable[[Predictions], Array | None]
    about: str

    def __call__(self, p: Predictions) -> Array | None:
        return self.of(p)


def negated(column: str) -> Callable[[Predictions], Array | None]:
    """A column that is lower for inside, turned round."""

    def of(p: Predictions) -> Array | None:
        values = getattr(p, column)
        return None if values is None else -values

    return of
