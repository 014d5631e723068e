"""The largest logit; for distances, the nearest class centre (Hendrycks et al., 2022)."""

from ova.scores.score import Score

SCORE = Score(lambda p: p.max_logit, "largest logit; smallest distance, negated")
