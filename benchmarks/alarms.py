"""What it costs a server to watch its answers: time for a row, in batches of several sizes, and memory.

Scores and best guesses are drawn, so that the time is that of the watch alone; 2,000 rows carry the promise.

    python benchmarks/alarms.py
"""

import tracemalloc
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

from ova.modelfolder.held import Answered
from ova.modelfolder.live import Live
from ova.modelfolder.watching import Watched
from ova.posthoc.threshold import fit_threshold
from ova.predictions import Predictions

HELD = 2000
CASES = [(1, 3000), (64, 300), (1024, 60)]  # rows of a batch, batches
LONG, STEP = 1_000_000, 50_000  # rows of a long life, and between two looks at the memory


def watched(classes: int, rng: np.random.Generator) -> Live:
    """What watches a model of so many classes that promises a coverage."""
    k, s = rng.integers(classes, size=HELD), rng.random(HELD)
    said = Predictions(
        id=np.arange(HELD), target=k, prediction=k, confidence=s, classes=classes, normalised=False
    )
    names = tuple(f"class {c}" for c in range(classes))
    threshold = fit_threshold(said, coverage=0.9)
    return Live(Watched(names, threshold, Answered(s, k), ""), 0.01)


def rows(live: Live, count: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Rows as a server logs them, with scores of four digits."""
    names = live.model.classes
    guesses = rng.integers(len(names), size=count).tolist()
    scores = rng.random(count).round(4).tolist()
    pairs = zip(scores, guesses, strict=True)
    return [{"score": s, "best_guess": names[k], "label": names[k]} for s, k in pairs]


def times(live: Live, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Microseconds of a row, for each size of batches."""
    for size, count in CASES:
        batches = [rows(live, size, rng) for _ in range(count)]
        started = process_time()
        for batch in batches:
            live.add(batch, own=True)
        yield size, 1e6 * (process_time() - started) / count / size


def memory(live: Live, rng: np.random.Generator) -> Iterator[tuple[int, float]]:
    """Megabytes that were taken since the start, after ever more rows."""
    tracemalloc.start()
    for _ in range(LONG // STEP):
        live.add(rows(live, STEP, rng), own=True)
        yield live.rows, tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()


def main() -> None:
    """Print both."""
    rng = np.random.default_rng(0)
    for classes in (10, 150):
        said = ", ".join(
            f"{us:.1f} in batches of {size}" for size, us in times(watched(classes, rng), rng)
        )
        print(f"{classes} classes: microseconds a row: {said}")
    for seen, mb in [*memory(watched(10, rng), rng)][1::6]:
        print(f"10 classes, {seen:,} rows: {mb:.1f} MB")


if __name__ == "__main__":
    main()
