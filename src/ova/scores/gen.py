"""The generalised entropy of the largest probabilities, negated (GEN; Liu et al., 2023)."""

from dataclasses import dataclass

import numpy as np

from ova.predictions.columns import Array
from ova.scores.outputs import Outputs
from ova.scores.score import Score

POWER, LARGEST = 0.1, 100  # the authors' choice for every data set of theirs


@dataclass(frozen=True)
class GeneralisedEntropy:
    """-sum over the M largest p of p^g (1 - p)^g."""

    power: float = POWER
    largest: int = LARGEST

    def __call__(self, rows: Outputs) -> Array:
        log_p = rows.log_probs
        assert log_p is not None, "what the score needs was checked"
        if log_p.shape[1] > self.largest:
            log_p = np.partition(log_p, -self.largest, axis=1)[:, -self.largest :]
        log_p = np.minimum(log_p, 0)
        return np.asarray(-((np.exp(log_p) * -np.expm1(log_p)) ** self.power).sum(1, dtype=float))


SCORES = {
    "gen": Score(
        about="generalised entropy of the 100 largest p, negated: -sum (p (1 - p))^.1",
        needs=("probabilities",),
        fit=lambda _: GeneralisedEntropy(),
        restore=GeneralisedEntropy,
    )
}
