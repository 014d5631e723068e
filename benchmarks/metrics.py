"""How fast predictions become numbers, beside torchmetrics and scikit-learn in the same run.

    python benchmarks/metrics.py [--rows 10000000] [--matrix 1000000]

Every peer is given float32 arrays that are already in memory and its quickest documented call;
where both peers can do a thing, the quicker one counts. Ours is measured after compiling once.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ova.files import cores
from ova.metrics.calibration import expected_error, reliability
from ova.metrics.evaluate import evaluate
from ova.metrics.ranking import aupr_inside, aupr_outside, auroc, fpr_at_tpr, rank
from ova.metrics.selective import GRID, accuracy_confidence
from ova.predictions import Predictions, write

REPEATS = 3  # of ours and of `max`; the best counts, because other work on the machine only adds


def timed(work: Callable[[], object], repeats: int = 1) -> float:
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def table(title: str, rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print(f"\n{title}")
    for row in rows:
        first, *rest = (
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        print("  " + "  ".join([first, *rest]))


def draw(rows: int) -> tuple[Predictions, Predictions]:
    """Half inside, half outside, saturated near one as networks are."""
    r = np.random.default_rng(0)
    n = rows // 2
    inside, outside = (r.beta(a, 0.4, n).astype(np.float32) for a in (3, 1.5))
    right = r.random(n) < inside
    zeros, ids = np.zeros(n, np.int32), np.arange(n)
    both: dict[str, Any] = {"id": ids, "classes": 2, "normalised": True}
    wrong = (~right).astype(np.int32)
    return (
        Predictions(target=zeros, prediction=wrong, confidence=inside, **both),
        Predictions(target=zeros - 1, prediction=zeros, confidence=outside, **both),
    )


def ours(inside: Predictions, outside: Predictions) -> dict[str, float]:
    r = rank(inside.confidence, outside.confidence)
    return {
        "ece": expected_error(reliability(inside)),
        "auroc": auroc(r),
        "aupr, inside positive": aupr_inside(r),
        "aupr, outside positive": aupr_outside(r),
        "fpr95": fpr_at_tpr(r),
        "accuracy against confidence": float(accuracy_confidence(inside, outside).accuracy[50]),
    }


def peers(inside: Predictions, outside: Predictions) -> list[tuple[str, str, Callable[[], float]]]:
    import torch
    from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve
    from torchmetrics.functional import classification as tm

    score = np.concatenate([inside.confidence, outside.confidence])
    known = np.repeat([1, 0], [len(inside), len(outside)])
    right = np.concatenate([inside.correct, np.zeros(len(outside), bool)])
    s, y = torch.from_numpy(score), torch.from_numpy(known)
    c, ok = torch.from_numpy(inside.confidence), torch.from_numpy(inside.correct.astype(np.int64))
    off: dict[str, Any] = {"validate_args": False}

    def fpr95_sklearn() -> float:
        fpr, tpr, _ = roc_curve(known, score)
        return float(fpr[np.argmax(tpr >= 0.95)])

    def fpr95_torch() -> float:
        fpr, tpr, _ = tm.binary_roc(s, y, **off)
        return float(fpr[int((tpr >= 0.95).int().argmax())])

    def curve() -> float:
        kept = [score >= np.float32(t) for t in GRID]
        return float(np.array([right[k].mean() if k.any() else np.nan for k in kept])[50])

    return [
        (
            "ece",
            "torchmetrics",
            lambda: float(tm.binary_calibration_error(c, ok, n_bins=15, **off)),
        ),
        (  # its float32 sums lose digits with the number of rows
            "ece",
            "torchmetrics, float64",
            lambda: float(tm.binary_calibration_error(c.double(), ok, n_bins=15, **off)),
        ),
        ("auroc", "torchmetrics", lambda: float(tm.binary_auroc(s, y, **off))),
        ("auroc", "scikit-learn", lambda: float(roc_auc_score(known, score))),
        (
            "aupr, inside positive",
            "torchmetrics",
            lambda: float(tm.binary_average_precision(s, y, **off)),
        ),
        (
            "aupr, inside positive",
            "scikit-learn",
            lambda: float(average_precision_score(known, score)),
        ),
        (
            "aupr, outside positive",
            "torchmetrics",
            lambda: float(tm.binary_average_precision(1 - s, 1 - y, **off)),
        ),
        (
            "aupr, outside positive",
            "scikit-learn",
            lambda: float(average_precision_score(1 - known, -score)),
        ),
        ("fpr95", "torchmetrics", fpr95_torch),
        ("fpr95", "scikit-learn", fpr95_sklearn),
        ("accuracy against confidence", "numpy masks", curve),
    ]


def against_peers(rows: int) -> None:
    inside, outside = draw(rows)
    compiling = timed(lambda: ours(*draw(1000)))
    values = ours(inside, outside)
    mine = timed(lambda: ours(inside, outside), REPEATS)
    quickest: dict[str, float] = {}
    lines: list[tuple[str, ...]] = [("", "by", "seconds", "value", "ours")]
    for name, by, work in peers(inside, outside):
        found: list[float] = []
        seconds = timed(partial(lambda work, found: found.append(work()), work, found))
        quickest[name] = min(quickest.get(name, float("inf")), seconds)
        lines.append((name, by, f"{seconds:.2f}", f"{found[0]:.9f}", f"{values[name]:.9f}"))
    total = sum(quickest.values())
    known = total - quickest["accuracy against confidence"]
    lines.append(("all, the quicker peer each", "", f"{total:.2f}", "", f"{mine:.3f} s"))
    table(f"{rows:,} predictions, half inside, half outside (float32)", lines)
    print(
        f"  ours is {total / mine:.1f} x as fast ({known / mine:.1f} x if the peers get the curve free)"
    )
    print(f"  compiling or loading compiled code took {compiling:.1f} s, once per process")


def linear(rows: int) -> None:
    lines: list[tuple[str, ...]] = [("rows", "seconds", "ns per row")]
    for n in (rows // 10, rows // 5, rows // 2, rows):
        sets = draw(n)
        seconds = timed(partial(ours, *sets), REPEATS)
        lines.append((f"{n:,}", f"{seconds:.3f}", f"{seconds / n * 1e9:.1f}"))
    table("cost against rows", lines)


def reduction(rows: int, classes: int = 1000) -> None:
    r = np.random.default_rng(0)
    p = np.empty((rows, classes), np.float32)
    for start in range(0, rows, 10_000):
        block = p[start : start + 10_000]
        block[:] = np.exp(3 * r.standard_normal(block.shape, np.float32))
        block /= block.sum(1, keepdims=True)
    y = r.integers(0, classes, rows)
    for normalised in (True, False):
        Predictions.from_probs(p[:10], y[:10], normalised=normalised)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    one_pass = timed(lambda: p.max(axis=1), REPEATS)
    lines: list[tuple[str, ...]] = [
        ("", "seconds", "x max"),
        ("max over classes", f"{one_pass:.3f}", "1.0"),
    ]
    for name, normalised in (("softmax columns", True), ("one-vs-all columns", False)):

        def work(normalised: bool = normalised) -> object:
            return Predictions.from_probs(p, y, normalised=normalised)

        seconds = timed(work, REPEATS)
        lines.append((name, f"{seconds:.3f}", f"{seconds / one_pass:.2f}"))
    table(f"{rows:,} x {classes} float32 matrix ({p.nbytes / 2**30:.1f} GiB) to columns", lines)
    extra = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    print(f"  extra memory at the peak: {extra / p.nbytes:.1%} of the matrix")


def halves() -> None:
    """What keeping the values on halves adds to the measuring of a run such as `cifar10-desk`."""
    sets = {"test": draw(20_000)[0], "ood/one": draw(20_000)[1], "ood/other": draw(52_000)[1]}
    sets |= {f"shift/{k}/{s}": draw(4000)[0] for k in range(19) for s in range(1, 6)}
    evaluate(sets, halves=("max_p",))
    plain = timed(lambda: evaluate(sets), REPEATS)
    more = timed(lambda: evaluate(sets, halves=("max_p",)), REPEATS)
    kept = sum(
        len(str(row["halves"])) for row in evaluate(sets, halves=("max_p",))[0] if "halves" in row
    )
    table(
        "measuring 10,000 test rows, 95 shifted sets of 2,000, two outside sets",
        [
            ("", "seconds", "kB kept"),
            ("without halves", f"{plain:.3f}", "0"),
            ("with halves", f"{more:.3f}", f"{kept / 1000:.1f}"),
        ],
    )


def command(rows: int) -> None:
    inside, outside = draw(2 * rows)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write(folder / "test.parquet", inside)
        write(folder / "ood.parquet", outside)
        call = [sys.executable, "-m", "ova", "evaluate", "test.parquet", "--ood", "ood.parquet"]
        seconds = timed(lambda: subprocess.run(call, cwd=folder, check=True, capture_output=True))
    table(
        "the whole command, every metric, curve and start-up included",
        [("", "seconds"), (f"ova evaluate, {rows:,} rows and as many outside", f"{seconds:.1f}")],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--matrix", type=int, default=1_000_000)
    args = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{cores()} cores, load {load:.1f} before the start")
    against_peers(args.rows)
    linear(args.rows)
    reduction(args.matrix)
    halves()
    command(args.rows)


if __name__ == "__main__":
    main()
