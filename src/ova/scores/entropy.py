"""The entropy of the probabilities, negated."""

from ova.scores.score import Score, negated

SCORE = Score(negated("entropy"), "entropy, negated so that higher means inside")
