"""What keeps a log from meaning what it seems to say: rows left out, other thresholds, labels that were chosen."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import chi2_contingency, mannwhitneyu

from ova.modelfolder.log import UNLABELLED, Log, rounded
from ova.posthoc.certificates import Truths
from ova.posthoc.per_class import Thresholds
from ova.posthoc.threshold import Threshold
from ova.predictions import NONE

DOUBT = 1e-4  # labels that were drawn by lot look so unlike the others no oftener than this


def unlike(log: Log, threshold: Threshold | Thresholds) -> int:
    """How many rows were answered or refused otherwise than the model's threshold does."""
    if isinstance(threshold, Thresholds):
        if log.guess is None:
            return 0
        value = threshold.values(log.guess)
    else:
        value = np.full(len(log), threshold.value)
    edge = np.where(np.isfinite(value), rounded(np.where(np.isfinite(value), value, 0)), value)
    # At the very edge the digits that CSV has say nothing.
    other = ((log.answer != NONE) != (log.score > edge)) & (log.score != edge)
    return int((other & log.own).sum())


def warnings(log: Log, promised: bool, differing: int) -> Iterator[str]:
    """What keeps an answer from meaning what it says."""
    if log.skipped:
        yield f"{log.skipped} rows have no score and are left out"
    if log.others:
        yield f"{log.others} rows are answers of another model and are left out"
    if asked := int((~log.own).sum()):
        yield f"{asked} rows were asked with another threshold; on them no promise is watched"
    if log.strange:
        yield f"{log.strange} labels are no class of the model and count as none of the classes"
    if log.guess is None:
        yield "the log has no `best_guess`, so that no class is watched by itself"
    if differing:
        yield (
            f"{differing} rows were not answered by the model's own threshold (--threshold, --fdr?), "
            "so that its promise says nothing about this log and is not watched"
        )
    elif not promised:
        yield "the model promises nothing, so that only its inputs are watched"
    labelled, answered = log.target != UNLABELLED, log.answer != NONE
    if not labelled.any():
        yield "there are no labels, so that the accuracy of the answers is not watched"
    else:
        yield from bias(log, labelled, answered)


def bias(log: Log, labelled: Truths, answered: Truths) -> Iterator[str]:
    """Labels that were not drawn by lot from the answers say little about the others."""
    some, rest = answered & labelled, answered & ~labelled
    if not some.any() or not rest.any():
        return
    if mannwhitneyu(log.score[some], log.score[rest]).pvalue < DOUBT:
        way = "lower" if np.median(log.score[some]) < np.median(log.score[rest]) else "higher"
        yield (
            f"answers with a label have {way} scores than those without: the accuracy is that of "
            "the labelled ones; label answers that are drawn by lot"
        )
    counts = np.stack(
        [np.bincount(log.answer[part], minlength=1 + log.answer.max()) for part in (some, rest)]
    )
    counts = counts[:, counts.any(axis=0)]
    if counts.shape[1] > 1 and chi2_contingency(counts).pvalue < DOUBT:
        yield (
            "answers with a label are of other classes than those without: the accuracy is that of "
            "the labelled ones; label answers that are drawn by lot"
        )
