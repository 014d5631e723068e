"""The nearest of many vectors, exactly: matrix products in blocks, of which only the best is looked at twice."""

from typing import Any

import numpy as np

from ova.predictions.columns import Array, own
from ova.predictions.parallel import by_blocks, compiled

QUERIES, VECTORS = 256, 1024  # of one product: a megabyte, which stays in a core's own cache
SPARE = 8  # candidates beyond k, because products in float32 may swap close ones
GROUP = 64  # products that are compared with the least of the best at once


def largest(
    queries: Array, vectors: Array, k: int, less: Array | None = None
) -> tuple[Array, Array]:
    """The k largest inner products of each query with the vectors and where they are, largest first.

    `less` is a number per vector that is taken off its products.
    """
    from threadpoolctl import threadpool_limits

    k = min(k, len(vectors))
    best = np.full((len(queries), k), -np.inf, np.float32)
    place = np.zeros((len(queries), k), np.int64)

    def block(start: int, stop: int) -> None:
        x, mine, at = queries[start:stop], best[start:stop], place[start:stop]
        for first in range(0, len(vectors), VECTORS):
            products = x @ vectors[first : first + VECTORS].T
            if less is not None:
                products -= less[first : first + VECTORS]
            _keep(products, first, mine, at)

    with threadpool_limits(1, "blas"):  # the blocks are shared among the cores already
        by_blocks(len(queries), QUERIES, block)
    order = np.argsort(-best, axis=1, kind="stable")
    return np.take_along_axis(best, order, 1), np.take_along_axis(place, order, 1)


def nearest(queries: Array, vectors: Array, k: int) -> tuple[Array, Array]:
    """The k smallest distances of each query to vectors of length one or zero, ascending, and where they are.

    Among vectors v of one length the largest products are the smallest distances, else those of the
    largest x.v - |v|^2 / 2. Products lose the digits of a small distance, so the distances of the
    candidates are computed again, by difference.
    """
    k = min(k, len(vectors))
    some = vectors.any(1)
    less = None if some.all() else np.where(some, np.float32(0.5), np.float32(0))
    _, place = largest(queries, vectors, k + SPARE, less)
    found = np.empty(place.shape)

    def block(start: int, stop: int) -> None:
        _distances(own(queries[start:stop]), own(vectors), place[start:stop], found[start:stop])

    by_blocks(len(queries), QUERIES, block)
    order = np.argsort(found, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(found, order, 1), np.take_along_axis(place, order, 1)


@compiled
def _keep(products: Any, first: int, best: Any, place: Any) -> None:
    """Put products that are among the k best into the heap of their query, the least on top."""
    k = best.shape[1]
    for i in range(len(products)):
        row, heap, at = products[i], best[i], place[i]
        for start in range(0, len(row), GROUP):
            stop = min(start + GROUP, len(row))
            better = 0
            for j in range(start, stop):  # no branch: whole registers are compared
                better += row[j] > heap[0]
            if better == 0:
                continue
            for j in range(start, stop):
                value = row[j]
                if value > heap[0]:
                    hole = 0
                    while 2 * hole + 1 < k:
                        child = 2 * hole + 1
                        if child + 1 < k and heap[child + 1] < heap[child]:
                            child += 1
                        if heap[child] >= value:
                            break
                        heap[hole], at[hole] = heap[child], at[child]
                        hole = child
                    heap[hole], at[hole] = value, first + j


@compiled
def _distances(queries: Any, vectors: Any, place: Any, found: Any) -> None:
    for i in range(len(place)):
        for j in range(place.shape[1]):
            x, v, total = queries[i], vectors[place[i, j]], 0.0
            for d in range(len(x)):
                off = float(x[d]) - float(v[d])
                total += off * off
            found[i, j] = np.sqrt(total)
