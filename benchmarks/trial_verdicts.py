"""What the runs of the trial say: cells with intervals, paired differences, Holm's correction, verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.special import stdtrit

from ova.files import read_object
from ova.metrics.calibration import signed_gaps
from ova.metrics.metric import ByRow
from ova.metrics.ranking import auroc, rank
from ova.metrics.selective import aurc, mixture
from ova.posthoc.calibration import from_json
from ova.predictions import read
from ova.predictions.columns import Array
from ova.predictions.sets import TEST, SetName
from ova.scores import scores_of
from ova.training.run_folder import CALIBRATION, PREDICTIONS, predictions_path

HIGHER = {  # the cells, and whether more is better
    "accuracy": True,
    "ECE": False,
    "ECE, calibrated": False,
    "ECE, shift": False,
    "ECE, shift, calibrated": False,
    "AUROC": True,
    "AUROC, its score": True,
    "mixed AURC": False,
    "mixed AURC, its score": False,
}
DECIDING = (
    "accuracy",
    "ECE, calibrated",
    "ECE, shift, calibrated",
    "AUROC, its score",
    "mixed AURC, its score",
)
SIGNS = np.array([1.0 if higher else -1.0 for higher in HIGHER.values()])
DECIDE = [list(HIGHER).index(cell) for cell in DECIDING]
DRAWS, LEVEL = 200, 0.05


@dataclass(frozen=True)
class Run:
    """What a run that judges said, reduced to what the cells are read off."""

    test: tuple[ByRow, ByRow]  # the ECE by its rows: as it is, calibrated
    shifted: Sequence[tuple[ByRow, ByRow]]
    right: Array
    scores: Sequence[tuple[Array, Array]]  # inside and outside: by max p, by its score

    @classmethod
    def read(cls, folder: Path, outside: str, score: str) -> "Run":
        """A finished run; confidences stay as they are where no calibration could be fitted."""
        said = read_object(folder / CALIBRATION)
        apply = from_json(said).apply if "why_not" not in said else (lambda p: p)

        def both(name: SetName) -> tuple[ByRow, ByRow]:
            p = read(predictions_path(folder, name))
            return signed_gaps(p), signed_gaps(apply(p))

        top = folder / PREDICTIONS
        names = (path.relative_to(top).with_suffix("") for path in top.glob("shift/*/*.parquet"))
        test, strange = (
            read(predictions_path(folder, name), probs=False)
            for name in (TEST, SetName.ood(outside))
        )
        inside, beyond = scores_of(test), scores_of(strange)
        return cls(
            test=both(TEST),
            shifted=[both(SetName(name.as_posix())) for name in sorted(names)],
            right=test.correct,
            scores=[(inside[name], beyond[name]) for name in ("max_p", score)],
        )

    def cells(self, rows: Array, strange: Array) -> Array:
        """The cells on chosen rows of the test and of the outside set."""
        eces = [[p.values[rows].mean() for p in pair] for pair in (self.test, *self.shifted)]
        shift = np.mean(eces[1:], 0)
        right = self.right[rows]
        found = [right.mean(), *eces[0], *shift]
        for inside, outside in self.scores:
            found.append(auroc(rank(inside[rows], outside[strange])))
        for inside, outside in self.scores:
            found.append(aurc(mixture(inside[rows], right, outside[strange])))
        return np.array(found)

    @property
    def excess(self) -> Array:
        """By how much each cell may be too high on average: noise never makes an ECE smaller."""
        found = np.zeros(len(HIGHER))
        eces = [[p.excess for p in pair] for pair in (self.test, *self.shifted)]
        found[1:3], found[3:5] = eces[0], np.mean(eces[1:], 0)
        return found

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of the test and of the outside set."""
        return len(self.right), len(self.scores[0][1])


@dataclass(frozen=True)
class Judged:
    """A formulation's cells: seeds x cells, and with redrawn rows seeds x draws x cells."""

    chosen: str
    values: Array
    redrawn: Array
    excess: Array  # by which a cell may be too high on average
    rows: int  # of the smaller set


def cells(run: Run) -> tuple[Array, Array]:
    """The cells of a run, and those on redrawn rows: the same for every formulation and seed."""
    draw, (n, m) = np.random.default_rng(0), run.sizes
    rows = [(draw.integers(n, size=n), draw.integers(m, size=m)) for _ in range(DRAWS)]
    return run.cells(np.arange(n), np.arange(m)), np.stack([run.cells(*pair) for pair in rows])


@dataclass(frozen=True)
class Difference:
    """How much better one is than another in each cell, and how likely that is by chance."""

    better: Array
    p: Array


def difference(one: Judged, other: Judged) -> Difference:
    """Paired over seeds and rows, with room for what the worse one's cell may be too high by.

    One seed says nothing of others. As if two more examples had been off by one: few errors say
    little about their rate.
    """
    apart = SIGNS * (one.values - other.values)
    better, n = apart.mean(0), len(apart)
    if n < 2:
        return Difference(better, np.ones(len(HIGHER)))
    moved = (one.redrawn - other.redrawn).mean(0)
    errors = (
        np.sqrt(apart.var(0, ddof=1) / n),
        np.sqrt(moved.var(0, ddof=1) + 2 / one.rows**2),
    )
    room = np.where(better > 0, other.excess, one.excess)
    return Difference(better, chance(np.abs(better) - room, errors, (n - 1, len(moved) - 1)))


def chance(size: Array, errors: tuple[Array, Array], freedom: tuple[int, int]) -> Array:
    """The p at which the half widths of both spreads, added in squares, reach the size.

    Each has its own quantile, as in a report: with few seeds their spread alone decides how sure
    one can be, and degrees of freedom between the two would be guessed from it.
    """
    low, high = np.zeros(len(size)), np.ones(len(size))
    for _ in range(60):
        p = (low + high) / 2
        half = np.hypot(*(stdtrit(f, 1 - p / 2) * e for f, e in zip(freedom, errors, strict=True)))
        low, high = np.where(half > size, p, low), np.where(half > size, high, p)
    return high


def holm(p: Array) -> Array:
    """Holm's corrected p-values (1979).

    >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(raised, 1.0)
    return corrected


def verdicts(results: Mapping[str, Judged], name: str, others: Sequence[str]) -> Array:
    """1 ahead, -1 behind, 0 level: of `name` against each of the others in the deciding cells."""
    found = [difference(results[name], results[other]) for other in others]
    corrected = holm(np.concatenate([d.p[DECIDE] for d in found])).reshape(len(others), -1)
    signs = np.sign([d.better[DECIDE] for d in found])
    return np.where(corrected <= LEVEL, signs, 0).astype(int)


def clearly_beaten(results: Mapping[str, Judged]) -> list[str]:
    """Those that are behind the best mean in at least three of the deciding cells."""
    means = {name: SIGNS * judged.values.mean(0) for name, judged in results.items()}
    beaten = []
    for name, judged in results.items():
        p, better = np.ones(len(DECIDE)), np.zeros(len(DECIDE))
        for at, cell in enumerate(DECIDE):
            best = max(means, key=lambda other: float(means[other][cell]))
            if best != name:
                found = difference(judged, results[best])
                p[at], better[at] = found.p[cell], found.better[cell]
        if ((holm(p) <= LEVEL) & (better < 0)).sum() >= 3:
            beaten.append(name)
    return beaten


def report(results: Mapping[str, Judged], ours: Sequence[str]) -> str:
    """Every cell with its t-interval over seeds, then what each of ours is against each other."""
    lines = [f"| | chosen | {' | '.join(HIGHER)} |", "|---|" + "---|" * (1 + len(HIGHER))]
    for name, judged in results.items():
        lines.append(
            f"| `{name}` | {judged.chosen} | {' | '.join(map(interval, judged.values.T))} |"
        )
    others = [name for name in results if name not in ours]
    lines += ["", f"| ahead +, behind -, level = in {', '.join(DECIDING)} | "
              + " | ".join(f"`{name}`" for name in others) + " |",
              "|---|" + "---|" * len(others)]  # fmt: skip
    best = bests(results)
    for name in (name for name in ours if name in results):
        marks = ["".join("-=+"[v + 1] for v in row) for row in verdicts(results, name, others)]
        lines.append(f"| `{name}` | " + " | ".join(marks) + " |")
    firsts = ", ".join(f"{cell}: `{name}`" for cell, name in zip(DECIDING, best, strict=True))
    return "\n".join([*lines, "", f"Best mean: {firsts}.", ""])


def bests(results: Mapping[str, Judged]) -> list[str]:
    """Who has the best mean in each deciding cell."""
    means = {name: SIGNS * judged.values.mean(0) for name, judged in results.items()}
    return [max(means, key=lambda name: float(means[name][cell])) for cell in DECIDE]


def interval(values: Array) -> str:
    """Mean and half width of the 95 % t-interval over seeds, which one seed does not have."""
    n = len(values)
    if n < 2:
        return f"{values.mean():.3f}"
    half = stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / sqrt(n)
    return f"{values.mean():.3f} ± {half:.3f}"
