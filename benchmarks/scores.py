"""What every score costs: to fit, and per million rows that are scored, on one thread.

    python benchmarks/scores.py [--features 128] [--classes 100] [--train 50000] [--rows 20000]

Seconds of the processor. The scores are timed one by one, so a joint pays for its parts again; `all`
is what they take together, sharing neighbours and predictions.
"""

import argparse
import os

os.environ["OMP_NUM_THREADS"] = "1"  # before anything reads it

import time
import tracemalloc

import numpy as np

from ova.scores import SCORES, AffineHead, Outputs, fit


def made(head: AffineHead, rows: int, seed: int) -> Outputs:
    r = np.random.default_rng(seed)
    K, D = head.weight.shape
    y = r.integers(0, K, rows)
    f = np.maximum(head.weight[y] + r.standard_normal((rows, D)) / np.sqrt(D), 0).astype(np.float32)
    return Outputs(features=f, logits=head(f), target=y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("features", 128), ("classes", 100), ("train", 50_000), ("rows", 20_000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    r = np.random.default_rng(0)
    weight = r.standard_normal((asked.classes, asked.features)) / np.sqrt(asked.features)
    head = AffineHead(weight, np.ones(asked.classes))
    train, held, rows = (
        made(head, n, s) for s, n in enumerate((asked.train, 2000, asked.rows), start=1)
    )
    print(f"{asked.train:,} training rows x {asked.features}, {asked.classes} classes, one thread")
    print("  score            fit, s   s per million rows")
    for name in (*SCORES, "all"):
        names = list(SCORES) if name == "all" else [name]
        start = time.process_time()
        fitted = fit(train, held=held, head=head, names=names)
        middle = time.process_time()
        fitted(rows.take(slice(64)))  # compiled from here on
        began = time.process_time()
        fitted(rows)
        each = (time.process_time() - began) / len(rows) * 1e6
        print(f"  {name:15}  {middle - start:6.2f}   {each:9.1f}")
    tracemalloc.start()
    fit(train, held=held, head=head)(rows)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    given = sum(x.nbytes for x in (train.features, rows.features)) / 2**20
    print(
        f"most memory at a time, fitting and scoring all: {peak:.0f} MiB; features have {given:.0f} MiB"
    )


if __name__ == "__main__":
    main()
