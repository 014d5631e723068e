"""Every formulation by every score: AUROC, FPR95 and mixed AURC with intervals, from the files of runs.

    python benchmarks/score_tables.py [FOLDER ...] [--only digits,clinc-desk]

Reads the committed results, or the folders that are named. Each number is the mean over the outside
sets and over seeds, ± half of the 95 % t-interval over seeds, or [low, high] over redrawn examples;
one seed of which no examples were redrawn has neither. `*` is a formulation's best score, which is
hindsight. Below each table: what held-out rows chose for the default formulation, beside the best
score of the best rival, also by hindsight.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from ova.errors import pick
from ova.metrics.choice import PLAIN
from ova.nn.formulations import DEFAULT
from ova.report import runs as found
from ova.report.intervals import Estimate, difference, estimate
from ova.report.scores import (
    AURC,
    AUROC,
    CHOSEN,
    FPR95,
    RIVALS,
    Question,
    by_way,
    measured,
    of_label,
)
from ova.training.run_folder import Run

RESULTS = Path(__file__).resolve().parents[1] / "results"


def number(value: Estimate) -> str:
    """The mean and its interval."""
    if value.low is None or value.high is None:
        return f"{value.mean:.4f}"
    if value.how == "bootstrap":
        return f"{value.mean:.4f} [{value.low:.3f}, {value.high:.3f}]"
    return f"{value.mean:.4f} ± {(value.high - value.low) / 2:.4f}"


def show(runs: Sequence[Run], question: Question) -> None:
    """One table: a line per score, a column per formulation."""
    labels = [name for name in found.labels(runs) if question.rows(of_label(runs, name), PLAIN)]
    best = {name: question.best(of_label(runs, name)) for name in labels}
    lines = [[f"{question.name} {'↑' if question.higher else '↓'}", *labels]]
    for score in measured(runs):
        rows = [question.rows(of_label(runs, name), score) for name in labels]
        cells = [number(estimate(each)) if each else "-" for each in rows]
        marks = ["*" if score == best[name] else "" for name in labels]
        lines.append([score, *(c + m for c, m in zip(cells, marks, strict=True))])
    chosen = [by_way(CHOSEN, of_label(runs, name), question) for name in labels]
    if any(rows for rows, _ in chosen):
        lines.append(["chosen", *(number(estimate(r)) if r else "-" for r, _ in chosen)])
        lines.append(["", *(names or "-" for _, names in chosen)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print(
            "  " + "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        )


def aim(runs: Sequence[Run], question: Question) -> str:
    """The default by what was chosen for it, beside the best score of the best rival."""
    sign = 1 if question.higher else -1
    rivals = {
        (name, score): rows
        for name in RIVALS
        if (score := question.best(of_label(runs, name)))
        and (rows := question.rows(of_label(runs, name), score))
    }
    way = CHOSEN if by_way(CHOSEN, of_label(runs, DEFAULT), question)[0] else PLAIN
    ours, by = by_way(way, of_label(runs, DEFAULT), question)
    if not rivals or not ours:
        return f"no run of {DEFAULT} or of a rival"
    rival, score = max(rivals, key=lambda key: sign * estimate(rivals[key]).mean)
    theirs = rivals[rival, score]
    said = (
        f"{DEFAULT} by {by} {number(estimate(ours))}, {rival} by {score} {number(estimate(theirs))}"
    )
    spread = difference(ours, theirs)
    if spread is None:
        return f"{said}; one seed says nothing of their difference"
    off = spread.at()
    assert off.low is not None
    assert off.high is not None
    clear = "better" if sign * off.mean > 0 else "worse"
    clear = clear if off.low > 0 or off.high < 0 else "not told apart"
    return f"{said}; difference {off.mean:+.4f} [{off.low:+.4f}, {off.high:+.4f}]: {clear}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, default=[RESULTS])
    parser.add_argument("--only", default="", help="experiments, separated by commas")
    asked = parser.parse_args()
    experiments = found.experiments(found.read(asked.folders))
    wanted = asked.only.split(",") if asked.only else list(experiments)
    for name in wanted:
        runs = pick(experiments, name, "experiment")
        if len(measured(runs)) < 2:
            continue
        print(f"== {name}, seeds: {len({run.seed for run in runs})}")
        for question in (AUROC, FPR95, AURC):
            if question.rows(runs, PLAIN):
                show(runs, question)
                print(f"  {aim(runs, question)}\n")


if __name__ == "__main__":
    main()
