"""Groups of like inputs among those that a model refused, by their features and of texts by their words."""

from collections.abc import Sequence

import numpy as np

from ova.predictions.columns import Array

# Mean distance of two groups that stay two; of unit vectors, where 1.41 is unlike. Looked for on
# CLINC150 with 30 intents left out (docs/own-data.md has what it does with others).
APART, APART_TEXTS = 1.1, 1.2
VOCABULARY = 2_000  # words that texts are compared by
FEWEST = 3  # rows of a group
BLOCK = 256  # rows of a matrix product


def likeness(f: Array, texts: Sequence[str] | None) -> tuple[Array, float]:
    """What rows are compared by, and how far apart two groups are that stay two."""
    words = None if texts is None else of_words(texts)
    if words is None:
        return f, APART
    return np.hstack([directions(f), directions(words)]), APART_TEXTS


def of_words(texts: Sequence[str]) -> Array | None:
    """TF-IDF of the commonest words; None where no word comes twice."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    try:
        words = TfidfVectorizer(
            sublinear_tf=True, min_df=2, max_features=VOCABULARY, dtype=np.float32
        )
        return np.asarray(words.fit_transform(texts).toarray())
    except ValueError:  # there is no such word
        return None


def grouped(x: Array, apart: float = APART) -> tuple[list[Array], Array]:
    """The rows of each group, the largest first and its most typical rows first; then those alone.

    Average linkage of the directions from the mean of all rows, which benchmarks/circle.py measures
    beside others.
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    u = directions(x)
    if len(u) < FEWEST:
        return [], np.arange(len(u))
    of = fcluster(linkage(distances(u), "average"), apart, "distance")
    found = [np.flatnonzero(of == k) for k in np.unique(of)]
    groups = [typical_first(u, rows) for rows in found if len(rows) >= FEWEST]
    groups.sort(key=lambda rows: (-len(rows), int(rows.min())))
    alone = [rows for rows in found if len(rows) < FEWEST]
    return groups, np.sort(np.concatenate(alone)) if alone else np.zeros(0, np.int64)


def directions(f: Array) -> Array:
    """Features from the mean of all rows, at length one; what lies at the mean has none."""
    x = np.asarray(f, np.float64)
    x = x - x.mean(axis=0) if len(x) else x
    length = np.linalg.norm(x, axis=1, keepdims=True)
    return (x / np.where(length > 0, length, 1)).astype(np.float32)


def distances(u: Array) -> Array:
    """All distances between unit vectors, in the order in which scipy has them."""
    n, found, at = len(u), np.empty(len(u) * (len(u) - 1) // 2), 0
    for first in range(0, n, BLOCK):
        cosine = u[first : first + BLOCK] @ u[first:].T
        for row in range(len(cosine)):
            more = n - first - row - 1
            found[at : at + more] = cosine[row, row + 1 :]
            at += more
    return np.sqrt(np.maximum(2 - 2 * found, 0))


def typical_first(u: Array, rows: Array) -> Array:
    """The rows of a group by how near they are to its middle."""
    near = u[rows] @ u[rows].mean(axis=0)
    return rows[np.argsort(-near, kind="stable")]
