"""The probability that any of K independent yes-or-no answers is yes."""

from ova.scores.score import Score, negated

SCORE = Score(negated("log_none"), "one minus the product of 1 - p, in its logarithmic form")
