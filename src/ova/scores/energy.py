"""The free energy of the logits, negated (Liu et al., 2020)."""

from ova.scores.score import Score

SCORE = Score(lambda p: p.energy, "log sum exp of the logits")
