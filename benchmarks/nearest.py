"""How fast the nearest training features are found, beside scikit-learn and faiss-cpu, on one thread.

    python benchmarks/nearest.py [--full]

Exact searches, k = 50 among features of length one: 200,000 x 128 with 1,000 queries, with --full
1,000,000 x 128 with 10,000. Seconds of the processor; all take turns and the best of each counts,
because other work on the machine only adds.
"""

import argparse
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before anything reads it

import time
import tracemalloc
from collections.abc import Callable

import faiss
import numpy as np
from sklearn.neighbors import NearestNeighbors

from ova.predictions.columns import Array
from ova.scores.neighbours import nearest

K, ROUNDS = 50, 5


def unit(rows: int, width: int, seed: int) -> Array:
    x = np.random.default_rng(seed).standard_normal((rows, width), dtype=np.float32)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def searches(bank: Array) -> dict[str, Callable[[Array], Array]]:
    """Each gives the distance to the k-th nearest."""
    brute = NearestNeighbors(n_neighbors=K, algorithm="brute").fit(bank)
    found: dict[str, Callable[[Array], Array]] = {
        "ours": lambda x: nearest(x, bank, K)[0][:, -1],
        "scikit-learn": lambda x: brute.kneighbors(x)[0][:, -1],
    }
    faiss.omp_set_num_threads(1)
    index = faiss.IndexFlatL2(bank.shape[1])
    index.add(bank)
    found["faiss-cpu"] = lambda x: np.sqrt(index.search(x, K)[0][:, -1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="a million features, 10,000 queries")
    full = parser.parse_args().full
    rows, queries = (1_000_000, 10_000) if full else (200_000, 1_000)
    bank, x = unit(rows, 128, 0), unit(queries, 128, 1)
    print(f"{rows:,} x 128, {queries:,} queries, k = {K}, one thread, best of {ROUNDS}")
    tracemalloc.start()
    nearest(x, bank, K)  # compiled from here on
    more = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    ways = searches(bank)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    answers: dict[str, Array] = {}
    for _ in range(1 if full else ROUNDS):
        for name, search in ways.items():
            start = time.process_time()
            answers[name] = search(x)
            seconds[name].append(time.process_time() - start)
    best = {name: min(times) for name, times in seconds.items()}
    quickest = min(time for name, time in best.items() if name != "ours")
    for name, time_taken in best.items():
        off = np.abs(answers[name] - answers["ours"]).max()
        print(
            f"  {name:12}  {time_taken:7.3f} s  {time_taken / quickest:5.2f} x  differs by {off:.1e}"
        )
    print(
        f"ours is {best['ours'] / quickest:.2f} x the faster peer and took {more:.0f} MiB beside the bank"
    )


if __name__ == "__main__":
    main()
