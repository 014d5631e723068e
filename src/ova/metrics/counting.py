"""The loops behind the metrics: counting in bins, and walking along sorted scores."""

from typing import Any

import numpy as np

from ova.predictions.parallel import compiled


@compiled
def count_in_bins(
    confidence: Any, group: Any, edges: Any, guess: Any, groups: int
) -> tuple[Any, Any]:
    """Per bin and group, the number of confidences and their sum.

    Bin i is edges[i] <= c < edges[i + 1], the first and last take what lies beyond. `guess` holds,
    for equal cells from the first edge to the last, the bin in which the cell starts; steps from
    there decide, so that an edge belongs to the bin it opens whatever was rounded on the way.
    """
    bins, cells = len(edges) - 1, np.int32(len(guess))
    low, width = edges[0], edges[bins] - edges[0]
    scale = confidence.dtype.type(cells / width if width > 0 else 0.0)
    opens, closes = edges[:bins].copy(), edges[1:].copy()
    opens[0], closes[bins - 1] = -np.inf, np.inf
    # Four sets of counters: neighbours in one bin would wait for each other's additions.
    count = np.zeros((4, bins * groups), np.int64)
    total = np.zeros((4, bins * groups), np.float64)
    for i in range(len(confidence)):
        c = confidence[i]
        b = guess[min(max(np.int32((c - low) * scale), np.int32(0)), cells - np.int32(1))]
        while c < opens[b]:
            b -= 1
        while c >= closes[b]:
            b += 1
        at = b * groups + group[i]
        count[i & 3, at] += 1
        total[i & 3, at] += c
    shape = (bins, groups)
    return count.sum(0).reshape(shape), total.sum(0).reshape(shape)


@compiled
def tally(inside: Any, outside: Any, score: Any, ins: Any, outs: Any) -> int:
    """Distinct scores of two ascending arrays, and how many of either are at or below each.

    Which side comes next is a coin toss that no processor predicts, so the loop has no branch:
    each step writes to the current place, and the place moves on when the score changes.
    """
    n, m = len(inside), len(outside)
    i, j, g = 0, 0, -1
    last = inside.dtype.type(np.nan)  # differs from every score
    while i < n and j < m:
        x, y = inside[i], outside[j]
        mine = x <= y
        s = min(x, y)
        g += s != last
        i += mine
        j += not mine
        score[g], ins[g], outs[g], last = s, i, j, s
    while i < n:
        g += inside[i] != last
        last = inside[i]
        i += 1
        score[g], ins[g], outs[g] = last, i, j
    while j < m:
        g += outside[j] != last
        last = outside[j]
        j += 1
        score[g], ins[g], outs[g] = last, i, j
    return g + 1


@compiled
def twice_wins(inside: Any, outside: Any) -> int:
    """Twice the number of pairs with inside > outside, plus the ties once: a whole number."""
    wins, a, b = 0, 0, 0
    for g in range(len(inside)):
        # Below this score lie b outside, at or below it outside[g]: twice the middle is the sum.
        wins += np.int64(inside[g] - a) * (np.int64(b) + outside[g])
        a, b = inside[g], outside[g]
    return wins


@compiled
def smallest_error(inside: Any, outside: Any) -> float:
    """The smallest mean of the two error rates over all thresholds."""
    n, m = inside[-1], outside[-1]
    best = 0.5
    for g in range(len(inside)):
        best = min(best, 0.5 * (inside[g] / n + (m - outside[g]) / m))
    return best


@compiled
def precision_sum(positive: Any, negative: Any) -> float:
    """Sum over distinct scores, best first, of the new positives times the precision with them.

    `positive` and `negative` are how many of either are found down to each score.
    """
    total, lost, before = 0.0, 0.0, 0
    for g in range(len(positive)):
        hits = positive[g]
        # Ten million terms: what each addition rounds away is carried to the next.
        term = (hits - before) * (hits / (np.int64(hits) + negative[g])) - lost
        new = total + term
        lost = (new - total) - term
        total, before = new, hits
    return total


@compiled
def risk_sum(right: Any, wrong: Any) -> float:
    """Sum over k = 1..N of the expected share of wrong ones among the k most confident.

    `right` and `wrong` are how many of either are answered down to each confidence.
    """
    total, seen, errors = 0.0, 0, 0
    for g in range(len(right)):
        size = right[g] + wrong[g] - seen
        share = (wrong[g] - errors) / size
        for j in range(1, size + 1):
            total += (errors + share * j) / (seen + j)
        seen += size
        errors = wrong[g]
    return total
