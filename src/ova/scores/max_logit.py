"""The largest logit; for distances, the nearest class centre (Hendrycks et al., 2022)."""

from ova.scores.score import free

SCORES = {
    "max_logit": free("largest logit; smallest distance, negated", "logits", lambda p: p.max_logit)
}
