"""The probability that any of K independent yes-or-no answers is yes."""

from ova.scores.score import free, negated

SCORES = {
    "any": free(
        "one minus the product of 1 - p, in its logarithmic form",
        "probabilities",
        negated("log_none"),
    )
}
