"""Which of a batch of inputs belong to no class, with at most a stated share of those named wrong.

The theorem and its proof are in docs/sets.md, under "A batch at once".
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ova.errors import BadInput
from ova.posthoc.certificates import Counts, Floats, Truths
from ova.posthoc.sets import exactly
from ova.posthoc.threshold import PLAIN, by, checked
from ova.predictions.columns import NONE, Predictions

Said = Predictions | ArrayLike  # predictions, or their scores, higher for inside


@dataclass(frozen=True, eq=False)
class Outside:
    """The inputs of a batch that are named as belonging to no class."""

    named: Truths
    p: Floats  # conformal p-values: the share of inputs of the classes that are as far out
    fdr: float  # share of those named that do belong to a class, expected at most
    n: int  # examples of the classes that it rests on

    def __str__(self) -> str:
        return (
            f"{self.named.sum()} of {len(self.named)} inputs belong to no class: of those named "
            f"at most {self.fdr:g} are expected to be wrong ({self.n} examples)"
        )


def outside(
    predictions: Said, calibration: Said, fdr: float = 0.1, *, score: str = PLAIN
) -> Outside:
    """The inputs that belong to no class, where E(wrongly named / named) <= fdr, whatever they are.

    p_i = (1 + #{calibration scores <= s_i}) / (n + 1), and the procedure of Benjamini and Hochberg
    (1995); Bates, Candes, Lei, Romano and Sesia (2023). `calibration` are held-out examples of the
    classes, independent of each other; rows of none of the classes among them are left out. `score`
    names another number of the predictions than their confidence; scores themselves will do as well.

    >>> rng = np.random.default_rng(0)
    >>> new = np.concatenate([rng.normal(size=80), rng.normal(-5, size=20)])
    >>> found = outside(new, rng.normal(size=1000), fdr=0.1)
    >>> print(found)
    22 of 100 inputs belong to no class: of those named at most 0.1 are expected to be wrong (1000 examples)
    >>> found.named[80:].all(), found.named[:80].sum()
    (np.True_, np.int64(2))
    """
    if not 0 < fdr < 1:
        raise BadInput(f"fdr must lie strictly between 0 and 1, not {fdr}")
    s, held = scores(predictions, score), scores(calibration, score)
    if isinstance(calibration, Predictions):
        held = held[np.asarray(calibration.target) != NONE]
    if not len(held):
        raise BadInput("no examples of the classes; name inputs by comparing them with some")
    as_far = 1 + np.searchsorted(np.sort(held), s, side="right").astype(np.int64)
    named = stepped_up(as_far, len(held) + 1, fdr)
    return Outside(named, as_far / (len(held) + 1), float(fdr), len(held))


def stepped_up(counts: Counts, of: int, fdr: float) -> Truths:
    """Benjamini and Hochberg on the p-values counts / of, compared as whole numbers.

    >>> stepped_up(np.array([1, 3, 9, 2]), 10, 0.3)
    array([False, False, False, False])
    >>> stepped_up(np.array([1, 3, 9, 2]), 10, 0.4)
    array([ True,  True, False,  True])
    """
    N, share = len(counts), exactly(fdr)
    # p_(j) <= fdr j / N, multiplied by all that divides: no rounding decides what is named.
    ranks = np.arange(1, N + 1).astype(object) * (share.numerator * of)
    most = (ranks // (share.denominator * N)).astype(np.int64)
    passed = np.flatnonzero(np.sort(counts) <= most)
    return np.asarray(counts <= (most[passed[-1]] if len(passed) else 0))


def scores(said: Any, score: str) -> Floats:
    """The scores of predictions, or checked scores."""
    values = by(said, score) if isinstance(said, Predictions) else said
    return checked(values, "score")
