"""Groups of like inputs among those that a model refused, found by the directions of their features."""

import numpy as np

from ova.predictions.columns import Array

APART = 1.1  # mean distance of two groups that stay two; of unit vectors, where 1.41 is unlike
FEWEST = 3  # rows of a group


def grouped(f: Array) -> tuple[list[Array], Array]:
    """The rows of each group, the largest first and its most typical rows first; then those alone.

    Average linkage of the directions from the mean of all rows. That groups of one meaning come out
    pure and whole was measured beside HDBSCAN and beside the words of texts (benchmarks/circle.py).
    """
    from scipy.cluster.hierarchy import fcluster, linkage

    u = directions(f)
    if len(u) < FEWEST:
        return [], np.arange(len(u))
    of = fcluster(linkage(distances(u), "average"), APART, "distance")
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
    for row in range(n - 1):
        cosine = u[row + 1 :] @ u[row]
        found[at : at + n - 1 - row] = np.sqrt(np.maximum(2 - 2 * cosine, 0))
        at += n - 1 - row
    return found


def typical_first(u: Array, rows: Array) -> Array:
    """The rows of a group by how near they are to its middle."""
    near = u[rows] @ u[rows].mean(axis=0)
    return rows[np.argsort(-near, kind="stable")]
