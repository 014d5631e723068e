"""The entropy of the probabilities, negated."""

from ova.scores.score import free, negated

SCORES = {
    "entropy": free(
        "entropy, negated so that higher means inside", "probabilities", negated("entropy")
    )
}
