"""The largest probability: the confidence itself (Hendrycks and Gimpel, 2017)."""

from ova.scores.score import Score

SCORE = Score(lambda p: p.confidence, "largest probability, never renormalised")
