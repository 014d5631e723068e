"""The largest probability: the confidence itself (Hendrycks and Gimpel, 2017)."""

from ova.scores.score import free

SCORES = {
    "max_p": free(
        "largest probability, never renormalised", "probabilities", lambda p: p.confidence
    )
}
