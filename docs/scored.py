"""The tables of every formulation by every score, from the committed results."""

from collections.abc import Sequence

from committed import experiments, markdown, runs

from ova.report.intervals import over_seeds
from ova.report.scores import AURC, AUROC, CHOSEN, FPR95, Question, counted, measured, picked_by
from ova.training.run_folder import Run

APART = ("digits-variants",)  # too many formulations for a page
SHOWN = (AUROC, FPR95, AURC)


def every_experiment() -> str:
    """A table per experiment and metric, of the experiments that have several scores."""
    shown = [name for name, mine in experiments().items() if len(measured(mine)) > 1]
    parts = [f"**{name}**\n\n{one_experiment(name)}" for name in shown if name not in APART]
    return "\n\n".join(parts)


def one_experiment(experiment: str) -> str:
    """What each score does on each formulation, the mean over outside sets, then what was chosen."""
    found = runs(experiment)
    by = measured([run for seeds in found.values() for run in seeds])
    tables = []
    for question in SHOWN:
        if not any(question.rows(seeds, "max_p") for seeds in found.values()):
            continue
        rows = [[f"`{s}`", *(cell(seeds, s, question) for seeds in found.values())] for s in by]
        if any(picked_by(CHOSEN, seeds)[0] for seeds in found.values()):
            rows.append(["chosen", *(choice(seeds, question) for seeds in found.values())])
        corner = f"{question.name} {'↑' if question.higher else '↓'}"
        tables.append(markdown([f"`{name}`" for name in found], rows, corner=corner))
    return "\n\n".join(tables)


def cell(seeds: Sequence[Run], score: str, question: Question) -> str:
    """The mean over seeds ± half of its 95 % t-interval; the best score of a formulation in bold."""
    text = told([row["value"] for row in question.rows(seeds, score)])
    return f"**{text}**" if score == question.best(seeds) else text


def choice(seeds: Sequence[Run], question: Question) -> str:
    """The same by the score that each run chose, and its name."""
    picks, _ = picked_by(CHOSEN, seeds)
    values = [row["value"] for run, name in picks for row in question.rows([run], name)]
    return f"{told(values)}, {counted([f'`{name}`' for _, name in picks])}"


def told(values: Sequence[float]) -> str:
    """A mean and its interval."""
    if not values:
        return "-"
    mean = over_seeds(values)
    return f"{mean.mean:.3f}" + ("" if mean.high is None else f" ± {mean.high - mean.mean:.3f}")
