"""The loops behind the metrics: counting in bins, and walking along sorted scores."""

from typing import Any

import numpy as np

from ova.predictions.compiled import compiled


@compiled
def count_in_bins(
    confidence: Any, group: Any, edges: Any, guess: Any, groups: int
) -> tuple[Any, Any]:
    """Per group and bin, the number of confidences and their sum.

    Bin i is edges[i] <= c < edges[i + 1], the last one closed. `guess` holds, for equal cells from
    the first edge to the last, the bin in which the cell starts; steps from there decide, so that
    an edge belongs to the bin it opens whatever was rounded on the way.
    """
    bins, cells = len(edges) - 1, len(guess)
    low, width = np.float64(edges[0]), np.float64(edges[bins]) - np.float64(edges[0])
    scale = cells / width if width > 0 else 0.0
    count = np.zeros((bins, groups), np.int64)
    total = np.zeros((bins, groups), np.float64)
    for i in range(len(confidence)):
        c = confidence[i]
        b = guess[min(max(int((c - low) * scale), 0), cells - 1)]
        while b > 0 and c < edges[b]:
            b -= 1
        while b < bins - 1 and c >= edges[b + 1]:
            b += 1
        count[b, group[i]] += 1
        total[b, group[i]] += c
    return count, total


@compiled
def tally(inside: Any, outside: Any) -> tuple[Any, Any, Any, int]:
    """Distinct scores of two ascending arrays and how often each occurs in either."""
    n, m = len(inside), len(outside)
    score = np.empty(n + m, inside.dtype)
    ins = np.empty(n + m, np.int32)
    outs = np.empty(n + m, np.int32)
    i, j, g = 0, 0, 0
    while i < n or j < m:
        s = inside[i] if j >= m or (i < n and inside[i] <= outside[j]) else outside[j]
        a, b = i, j
        while i < n and inside[i] == s:
            i += 1
        while j < m and outside[j] == s:
            j += 1
        score[g], ins[g], outs[g] = s, i - a, j - b
        g += 1
    return score, ins, outs, g


@compiled
def twice_wins(inside: Any, outside: Any) -> int:
    """Twice the number of pairs with inside > outside, plus the ties once: a whole number."""
    wins, below = 0, 0
    for g in range(len(inside)):
        wins += np.int64(inside[g]) * (2 * below + outside[g])
        below += outside[g]
    return wins


@compiled
def precision_sum(positive: Any, negative: Any, backwards: bool) -> float:
    """Sum over groups, best first, of the new positives times the precision reached with them."""
    G = len(positive)
    total, lost = 0.0, 0.0
    hits, seen = 0, 0
    for step in range(G):
        g = G - 1 - step if backwards else step
        hits += positive[g]
        seen += positive[g] + negative[g]
        if positive[g] > 0:
            # Ten million terms: what each addition rounds away is carried to the next.
            term = positive[g] * (hits / seen) - lost
            new = total + term
            lost = (new - total) - term
            total = new
    return total


@compiled
def false_positives(inside: Any, outside: Any, needed: int) -> int:
    """How many outside pass the highest threshold that at least `needed` inside pass."""
    hits: int = 0
    false: int = 0
    for step in range(len(inside)):
        g = len(inside) - 1 - step
        hits += inside[g]
        false += outside[g]
        if hits >= needed:
            return false
    return false


@compiled
def smallest_error(inside: Any, outside: Any, n: int, m: int) -> float:
    """The smallest mean of the two error rates over all thresholds."""
    best, missed, refused = 0.5, 0, 0
    for g in range(len(inside)):
        missed += inside[g]
        refused += outside[g]
        best = min(best, 0.5 * (missed / n + (m - refused) / m))
    return best


@compiled
def risk_sum(right: Any, wrong: Any) -> float:
    """Sum over k = 1..N of the expected share of wrong ones among the k most confident."""
    total, seen, errors = 0.0, 0, 0
    for step in range(len(right)):
        g = len(right) - 1 - step
        size = right[g] + wrong[g]
        share = wrong[g] / size
        for j in range(1, size + 1):
            total += (errors + share * j) / (seen + j)
        seen += size
        errors += wrong[g]
    return total
