"""A promise for inputs of another kind than the held-out ones: rows are taken as often as their weight says.

The theorem and its proof are in docs/threshold.md, under "Under a known shift".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ova.errors import BadInput
from ova.posthoc.certificates import Floats
from ova.posthoc.independent import Rows
from ova.posthoc.threshold import Scored, Threshold, checked, fit_threshold, scored

FEWEST = 20  # rows of each kind that a likelihood ratio is learned from
CLIPPED = 0.99  # estimated weights above this quantile of the rows they were learned from are cut
BEYOND = 0.1  # share of the new inputs with a larger weight, for which held-out rows say too little
FOLD = 0.5  # share of the held-out rows that the weights are learned from, and that carry nothing


@dataclass(frozen=True)
class Shifted:
    """A threshold for other inputs, and how much the held-out rows know of these."""

    threshold: Threshold
    n: int  # rows with a weight
    kept: int  # of them taken, by lot: so many draws of the other inputs the promise rests on
    effective: float  # (sum w)^2 / sum w^2, what the weights leave of the rows at best
    estimated: bool  # the weights, so that the promise is for what they say, not for the truth

    @property
    def promised(self) -> bool:
        """Whether a promise stands."""
        return self.threshold.promised

    def __str__(self) -> str:
        how = "estimated" if self.estimated else "given"
        of = f"{self.kept} of {self.n} examples taken by {how} weights, effectively {self.effective:.0f}"
        return f"{self.threshold}\n{of}"


def fit_shifted(
    predictions: Scored | tuple[ArrayLike, ArrayLike],
    weights: ArrayLike,
    accuracy: float = 0.99,
    certainty: float = 0.95,
    *,
    bound: float,
    seed: int = 0,
) -> Shifted:
    """The threshold whose promise holds for inputs of density w(x) times that of the held-out ones.

    `weights` are w up to a factor, one for each held-out row, and `bound` a number that w never
    exceeds for any input, known before looking. Each row is taken with probability w / bound: what
    is taken are independent draws of the new inputs, and their number is random but not their kind.
    Too few leave a threshold that answers nothing and says how many would be needed.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.random(8000)
    >>> right = rng.random(8000) < np.where(x < 0.5, 0.6, 0.99)
    >>> print(fit_shifted((x, right), 2 * x, 0.9, bound=2))
    answer above 0.290829: accuracy >= 0.9 with certainty 0.95 (4017 examples, 90.9 % answered, 90.9 % of them right)
    4017 of 8000 examples taken by given weights, effectively 5981
    """
    c, right = scored(predictions)
    w = checked_weights(weights, len(c))
    if not w.max() <= bound < np.inf:
        raise BadInput(
            f"bound must be a number that no weight exceeds, and {w.max():g} does {bound:g}"
        )
    return _fitted((c, right), w, (accuracy, certainty), (bound, seed), estimated=False)


def fit_like(
    predictions: Scored | tuple[ArrayLike, ArrayLike],
    features: tuple[ArrayLike, ArrayLike],
    accuracy: float = 0.99,
    certainty: float = 0.95,
    *,
    seed: int = 0,
) -> Shifted:
    """The same for inputs of which only an unlabelled sample is known.

    `features` are of the held-out rows and of the sample, N x D and M x D (scores will do: D = 1).
    A logistic classifier that tells the two apart on half of the held-out rows, drawn by lot, gives
    the weights of the other half, which are cut where hardly any held-out row is. The promise is
    for what these weights make of the held-out inputs. It is for the sample's inputs only as far as weights are right, which nothing proves.
    """
    c, right = scored(predictions)
    old, new = matrix(features[0], "held-out rows"), matrix(features[1], "new inputs")
    if len(old) != len(c) or old.shape[1] != new.shape[1]:
        raise BadInput(
            f"features are {old.shape} of {len(c)} held-out rows and {new.shape} of new inputs; "
            "there must be a row for each, and as many columns"
        )
    rows = np.random.default_rng([seed, 0]).permutation(len(c))
    learned, carry = np.split(rows, [int(FOLD * len(rows))])
    if min(len(learned), len(new)) < FEWEST:
        raise BadInput(
            f"weights cannot be learned from {len(learned)} held-out rows and {len(new)} new inputs; "
            f"{FEWEST} of each are the least"
        )
    ratio = likelihood_ratio(old[learned], new)
    bound = float(np.quantile(ratio(old[learned]), CLIPPED, method="higher"))
    beyond = float((ratio(new) > bound).mean())
    if (
        beyond > BEYOND
    ):  # also where nothing is alike, and weights within the held-out rows are even
        raise BadInput(
            f"{beyond:.0%} of the new inputs are unlike nearly all held-out rows, {BEYOND:.0%} may be; "
            "label some new inputs and fit the threshold on them".replace("%", " %")
        )
    w = np.minimum(ratio(old[carry]), bound)
    return _fitted(
        (c[carry], right[carry]), w, (accuracy, certainty), (bound, seed), estimated=True
    )


def likelihood_ratio(old: Floats, new: Floats) -> Any:
    """A function that gives, up to a factor, how much likelier inputs are among the new ones."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scale = StandardScaler().fit(old)
    both = scale.transform(np.concatenate([old, new]))
    told = LogisticRegression(max_iter=1000).fit(both, np.arange(len(both)) >= len(old))
    return lambda x: np.exp(np.minimum(told.decision_function(scale.transform(x)), 700.0))


def taken(weights: Floats, bound: float, seed: int) -> Rows:
    """The rows that are taken, each with probability w / bound, by a lot that looks at nothing else."""
    lots = np.random.default_rng([seed, 1]).random(len(weights))
    return np.flatnonzero(lots * bound < weights)


def _fitted(
    examples: tuple[Floats, Any],
    w: Floats,
    wanted: tuple[float, float],
    lot: tuple[float, int],
    *,
    estimated: bool,
) -> Shifted:
    c, right = examples
    rows, effective = taken(w, *lot), float(w.sum() ** 2 / (w**2).sum())
    if not len(rows):
        raise BadInput(
            f"of {len(c)} held-out rows none is like the new inputs (effectively {effective:.1f} "
            "are); a promise needs held-out rows of their kind"
        )
    found = fit_threshold((c[rows], right[rows]), *wanted)
    return Shifted(found, len(c), len(rows), effective, estimated)


def checked_weights(weights: ArrayLike, n: int) -> Floats:
    """One number for each row, none below zero, not all of them zero."""
    w = checked(weights, "weight")
    if len(w) != n:
        raise BadInput(f"{n} examples but {len(w)} weights; there must be one each")
    if (w < 0).any() or not w.any():
        raise BadInput("weights must not be negative, nor all of them zero")
    return w


def matrix(features: ArrayLike, of: str) -> Floats:
    """Finite numbers, a row for each input; a vector is one column."""
    x = np.asarray(features, np.float64)
    x = x[:, None] if x.ndim == 1 else x
    if x.ndim != 2 or not np.isfinite(x).all():
        raise BadInput(
            f"the features of {of} must be finite numbers, a row for each, not of shape {x.shape}"
        )
    return x
