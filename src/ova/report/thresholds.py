"""What a threshold costs and buys, read off the accuracy-confidence curves of each run."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from ova.files import Row
from ova.predictions.sets import TEST, SetName
from ova.report.select import curves
from ova.training.run_folder import Run

MOST = 201  # positions of the slider; curves on another grid are read at these
START = 0.5  # where the slider stands first, unless a model has a threshold of its own


def grid(runs: Sequence[Run]) -> list[float]:
    """The slider's positions: those of the curves when they agree on a few, else steps of 1/200."""
    seen = {
        t
        for run in runs
        for c in curves(run, "accuracy_confidence")
        for t in c["columns"]["threshold"]
    }
    found = sorted(t for t in seen if t is not None)
    return found if 0 < len(found) <= MOST else [i / 200 for i in range(201)] if found else []


def nearest(grid: Sequence[float], wanted: float) -> int:
    """The position whose threshold is nearest to the wanted one.

    >>> nearest([0.0, 0.5, 1.0], 0.8)
    2
    """
    return min(range(len(grid)), key=lambda i: abs(grid[i] - wanted))


def read_at(columns: dict[str, list[Any]], thresholds: Sequence[float]) -> dict[str, list[Any]]:
    """The curve at each threshold t: everything with confidence >= t is answered.

    That is the row of the smallest threshold of the curve that is not below t.

    >>> read_at({"threshold": [0.0, 0.5, 0.9], "kept": [1.0, 0.6, 0.2]}, [0.4, 0.5, 0.95])
    {'kept': [0.6, 0.6, None]}
    """
    steps = columns["threshold"]
    at = [bisect_left(steps, t) for t in thresholds]
    names = [name for name in columns if name != "threshold"]
    return {name: [columns[name][i] if i < len(steps) else None for i in at] for name in names}


def of_run(run: Run, thresholds: Sequence[float]) -> Row | None:
    """Share answered and accuracy on the test set, and the same with each OOD set mixed in."""
    found = {SetName(c["dataset"]): c["columns"] for c in curves(run, "accuracy_confidence")}
    if TEST not in found:
        return None
    test = read_at(found[TEST], thresholds)
    mixed = {
        name.short: beside(found[TEST], columns, thresholds)
        for name, columns in found.items()
        if name.mixed
    }
    return {
        "label": run.label,
        "seed": run.seed,
        "answered": [share or 0 for share in test["answered"]],
        "accuracy": test["accuracy"],
        "mixed": mixed,
    }


def beside(test: dict[str, list[Any]], mix: dict[str, list[Any]], at: Sequence[float]) -> Row:
    """Accuracy and share kept of the mixture, and the share of the OOD set that is let through."""
    inside, both = read_at(test, at)["kept"], read_at(mix, at)
    outside = size(mix) - size(test)
    let = [(b or 0) - (i or 0) for b, i in zip(both["kept"], inside, strict=True)]
    return {
        "accuracy": both["accuracy"],
        "answered": [share or 0 for share in both["answered"]],
        "through": [six(count / outside) if outside else None for count in let],
    }


def six(value: float) -> float:
    """The value to six digits, as the curves have it."""
    return float(f"{value:.6g}")


def size(columns: dict[str, list[Any]]) -> int:
    """The number of examples behind a curve: the number kept over the share answered."""
    pairs = zip(columns["kept"], columns["answered"], strict=True)
    return next((round(count / share) for count, share in pairs if share), 0)


def table(runs: Sequence[Run]) -> Row:
    """Everything the slider needs: the positions, and the values of each run at each of them."""
    thresholds = grid(runs)
    rows = [row for run in runs if (row := of_run(run, thresholds))]
    return {"grid": thresholds, "runs": rows if thresholds else []}


def needed(run: Row, thresholds: Sequence[float], accuracy: float) -> int | None:
    """The lowest position from which on the accuracy of the answered stays at or above the wish."""
    good = [a is None or a >= accuracy for a in run["accuracy"]]
    first = next((len(good) - i for i, ok in enumerate(reversed(good)) if not ok), 0)
    ok = first < len(thresholds) and run["accuracy"][first] is not None
    return first if ok else None
