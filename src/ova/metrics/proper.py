"""Accuracy, and the proper scores (log-loss, Brier): one value per example, and its mean."""

from ova.metrics.metric import Mean, Metric
from ova.predictions import Predictions
from ova.predictions.columns import Array


def right(p: Predictions) -> Array:
    """1 where the most probable class is the target; its mean is the accuracy.

    >>> right(Predictions.from_probs([[0.9, 0.1], [0.8, 0.2]], [0, 1], normalised=True))
    array([ True, False])
    """
    return p.correct


def confidence(p: Predictions) -> Array:
    """max_k p_k, as it is.

    >>> said = Predictions.from_probs([[0.75, 0.25], [0.5, 0.5]], [0, 1], normalised=True)
    >>> confidence(said)
    array([0.75, 0.5 ])
    """
    return p.confidence


def log_loss(p: Predictions) -> Array | None:
    """-log p_y, for probabilities that sum to one; None for others, which could all be 1.

    >>> said = Predictions.from_probs([[0.5, 0.5]], [0], normalised=True)
    >>> log_loss(said).round(4)
    array([0.6931])
    """
    return -p.log_p if p.normalised and p.log_p is not None else None


def one_vs_all_log_loss(p: Predictions) -> Array | None:
    """-log p_y - sum_{j != y} log(1 - p_j): K yes-or-no answers, for one-vs-all only.

    >>> said = Predictions.from_probs([[0.5, 0.5]], [0], normalised=False)
    >>> one_vs_all_log_loss(said).round(4)
    array([1.3863])
    """
    return None if p.normalised or p.log_answers is None else -p.log_answers


def brier(p: Predictions) -> Array | None:
    """sum_k (p_k - [k = y])^2, for probabilities that sum to one. Brier (1950).

    >>> brier(Predictions.from_probs([[0.5, 0.5]], [0], normalised=True))
    array([0.5])
    """
    return p.squared_error if p.normalised else None


def one_vs_all_brier(p: Predictions) -> Array | None:
    """The Brier scores (p_k - [k = y])^2 of K yes-or-no answers, added up, for one-vs-all only.

    Divide by K for their mean. Examples of no class count: every answer should be no.

    >>> one_vs_all_brier(Predictions.from_probs([[0.5, 0.5]], [-1], normalised=False))
    array([0.5])
    """
    return None if p.normalised else p.squared_error


METRICS = {
    "accuracy": Metric(Mean(right), "higher", "share of right answers"),
    "confidence": Metric(
        Mean(confidence),
        "neither",
        "mean of max p, never renormalised",
        outside=True,
        calibrated=True,
    ),
    "nll": Metric(
        Mean(log_loss), "lower", "mean of -log p of the target; probabilities that sum to 1"
    ),
    "nll_one_vs_all": Metric(
        Mean(one_vs_all_log_loss),
        "lower",
        "mean negative log-likelihood of K yes-or-no answers; one-vs-all",
        outside=True,
    ),
    "brier": Metric(Mean(brier), "lower", "mean squared error of the K-vector that sums to 1"),
    "brier_one_vs_all": Metric(
        Mean(one_vs_all_brier),
        "lower",
        "mean of the K yes-or-no Brier scores, added up; one-vs-all",
        outside=True,
    ),
}
