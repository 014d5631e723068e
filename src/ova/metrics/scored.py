"""How well fitted scores tell outsiders and errors, on outputs of any network: what `ova score` prints."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ova.errors import BadInput
from ova.files import Row
from ova.metrics.evaluate import by_score, read_off
from ova.metrics.ranking import Ranking
from ova.metrics.resampling import Draws
from ova.metrics.selective import MIXED, mixture
from ova.predictions import SetName
from ova.predictions.columns import Array
from ova.predictions.sets import TEST
from ova.scores import FittedScores, Outputs
from ova.scores.fitting import Batches
from ova.scores.outputs import stream
from ova.scores.training import completed


@dataclass(frozen=True, eq=False)
class Scored:
    """The values of every score on a set, and which of its answers are right, where that is known."""

    values: dict[str, Array]
    right: Array | None

    def only(self, score: str) -> "Scored":
        """One score of them."""
        return Scored({score: self.values[score]}, self.right)


def evaluate_scores(
    fitted: FittedScores, test: Batches, outside: Mapping[str, Batches], draws: Draws | None = None
) -> list[Row]:
    """A row per score, metric and outside set; rows of `test` are seen once, so are the others.

    >>> from ova.scores import Outputs, fit
    >>> rows = Outputs(logits=[[4.0, 0.0], [0.0, 3.0]], target=[0, 1])
    >>> found = evaluate_scores(fit(rows), rows, {"far": Outputs(logits=[[0.1, 0.0]])})
    >>> found[0]
    {'dataset': 'test', 'metric': 'aurc', 'value': 0.0, 'n': 2, 'score': 'max_p'}
    """
    inside = scored(fitted, of_classes(test))
    found = list(errors(inside, draws))
    for name, batches in outside.items():
        found += compared(name, inside, scored(fitted, batches), draws)
    return found


def scored(fitted: FittedScores, batches: Batches) -> Scored:
    """Every score of every row; the rows themselves are not kept."""
    if not fitted.names:
        raise BadInput("no score applies: there must be features, logits or probabilities")
    values: dict[str, list[Array]] = {name: [] for name in fitted.names}
    right: list[Array] = []
    for block in stream(batches):
        rows = completed(block, fitted.head)
        said = rows.said  # once, also for the scores
        for name, found in fitted.of_block(replace(rows, predictions=said)).items():
            if name in values:
                values[name].append(found)
        if said is not None and rows.target is not None:
            right.append(said.correct)
    if not any(values.values()):
        raise BadInput("a set has no rows")
    joined = {name: np.concatenate(parts) for name, parts in values.items()}
    return Scored(joined, np.concatenate(right) if right else None)


def errors(test: Scored, draws: Draws | None) -> Iterator[Row]:
    """How well each score ranks right answers above wrong ones, with nothing mixed in."""
    if test.right is None:
        return
    for score, a in test.values.items():
        yield from read_off(TEST, score, MIXED, _alone(a, test.right), draws)


def _alone(a: Array, right: Array) -> tuple[Callable[[Array, Array], Ranking], tuple[int, int]]:
    return lambda rows, _: mixture(a[rows], right[rows], a[:0]), (len(a), 0)


def compared(name: str, test: Scored, outside: Scored, draws: Draws | None) -> Iterator[Row]:
    """How well each score tells one outside set, and errors and that set together."""
    for score, a in test.values.items():
        values = (a, outside.values[score], test.right)
        yield from by_score(SetName.ood(name), score, values, draws)


def of_classes(batches: Batches) -> Iterator[Outputs]:
    """The rows of a test set, which must be of the classes."""
    for rows in stream(batches):
        if rows.target is not None and (rows.classes < 0).any():
            raise BadInput(
                "a test row has target -1: what is of no class belongs in an outside set"
            )
        yield rows
