"""Which number should refuse: the confidence, the score that held-out rows chose, the best in hindsight."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ova.files import Row
from ova.metrics.choice import PLAIN
from ova.predictions.sets import SetName
from ova.report import select
from ova.report.intervals import Estimate, estimate
from ova.report.markup import Markup, el, table
from ova.report.numbers import interval, plain
from ova.report.runs import labels
from ova.report.thinning import TOLERANCE, thinned
from ova.scores import SCORES
from ova.training.run_folder import Run

CHOSEN, BEST = "chosen", "best"
WAYS = {PLAIN: "max p", CHOSEN: "chosen on held-out rows", BEST: "best in hindsight"}
RIVALS = ("softmax", "dm")  # whose scores that cost nothing are compared with one-vs-all
FREE = tuple(name for name, score in SCORES.items() if score.column is not None)


@dataclass(frozen=True)
class Question:
    """A detection metric by which scores are compared, over the sets that it is measured on."""

    name: str
    metric: str
    higher: bool
    meant: Callable[[SetName], bool]

    def rows(self, runs: Sequence[Run], score: str) -> list[Row]:
        """Per run the mean over its sets by a score; runs without it have none."""
        return select.over(runs, self.metric, self.meant, score)

    def best(self, runs: Sequence[Run], among: Iterable[str] | None = None) -> str | None:
        """The score with the best mean among those that all measured runs have."""
        count = len(self.rows(runs, PLAIN))
        means = {
            score: fmean(row["value"] for row in rows)
            for score in (measured(runs) if among is None else among)
            if (rows := self.rows(runs, score)) and len(rows) == count
        }
        if not means:
            return None
        return max(means, key=lambda s: means[s] if self.higher else -means[s])


AUROC = Question("OOD AUROC", "auroc", True, lambda name: name.outside)
FPR95 = Question("FPR95", "fpr95", False, AUROC.meant)
AURC = Question("AURC, unknown mixed in", "aurc", False, lambda name: name.mixed)
QUESTIONS = (AUROC, AURC)


def measured(runs: Sequence[Run]) -> list[str]:
    """The scores that were measured on any outside set, in the order of the table of scores."""
    found = dict.fromkeys(
        str(row["score"])
        for run in runs
        for row in run.measurements
        if "score" in row and SetName(row["dataset"]).kind in ("ood", "test+ood")
    )
    return [name for name in SCORES if name in found] + [n for n in found if n not in SCORES]


def chosen(run: Run) -> str | None:
    """The score that the run's own held-out rows chose; None of older runs."""
    told = run.manifest.get("score")
    name = told.get("chosen") if isinstance(told, dict) else None
    return name if isinstance(name, str) else None


def of_label(runs: Sequence[Run], label: str) -> list[Run]:
    """The runs of a formulation."""
    return [run for run in runs if run.label == label]


def picked_by(
    way: str, runs: Sequence[Run], question: Question = AUROC
) -> tuple[list[tuple[Run, str]], str]:
    """Each run of a formulation with the score meant by a way, and the scores' names."""
    best = question.best(runs) if way == BEST else None
    names = [chosen(run) if way == CHOSEN else best if way == BEST else way for run in runs]
    picks = [(run, name) for run, name in zip(runs, names, strict=True) if name is not None]
    return picks, counted([name for _, name in picks])


def by_way(way: str, runs: Sequence[Run], question: Question) -> tuple[list[Row], str]:
    """The values of one formulation's runs by max p, chosen or best score, and the scores' names."""
    picks, names = picked_by(way, runs, question)
    return [row for run, name in picks for row in question.rows([run], name)], names


def counted(names: Sequence[str]) -> str:
    """The names, with their numbers where they differ.

    >>> counted(["energy", "energy"]), counted(["knn", "max_p", "knn"])
    ('energy', 'knn (2), max_p (1)')
    """
    counts = Counter(names)
    if len(counts) < 2:
        return "".join(counts)
    return ", ".join(f"{name} ({n})" for name, n in counts.most_common())


def overview(runs: Sequence[Run]) -> Markup:
    """Per formulation: max p, the chosen score and the best one."""
    body = []
    for label in labels(runs):
        mine = of_label(runs, label)
        cells = [cell(*by_way(way, mine, each)) for each in QUESTIONS for way in WAYS]
        body.append([label, *cells])
    arrow = {True: "↑", False: "↓"}
    head = [f"{q.name} {arrow[q.higher]}: {way}" for q in QUESTIONS for way in WAYS.values()]
    caption = (
        "What decides “none of the above”: max p, the score that each run's own held-out rows chose "
        "before any outside set was looked at, and the score that was best on these very outside "
        "sets. The last is hindsight: it shows what could be had, not what a user would get"
    )
    return table(["Formulation", *head], body, caption, "scores")


def cell(rows: Sequence[Row], name: str) -> Markup:
    """The mean, the score by which, and the interval."""
    if not rows:
        return el("span", "–", class_="quiet")
    found: Estimate = estimate(rows)
    return el("span", el("b", plain(found.mean)), " ", el("small", name), " ",
              el("small", interval(found, "")))  # fmt: skip


def card(runs: Sequence[Run]) -> Markup | None:
    """The table as a card of the summary."""
    if len(measured(runs)) < 2:
        return None
    question = el("h4", "By which number should it refuse?")
    return el("section", question, overview(runs), class_="card wide")


def free_rivals(runs: Sequence[Run]) -> list[str]:
    """Where a rival's free score beats every one-vs-all formulation; a report says that first."""
    names = labels(runs)
    ours = [name for name in names if name.split(" ")[0].startswith("ova")]
    said = []
    for question in QUESTIONS:
        theirs = [best_free(runs, name, question) for name in names if name.split(" ")[0] in RIVALS]
        rivals = [found for found in theirs if found is not None]
        if not rivals or not ours:
            continue
        sign = 1 if question.higher else -1
        value, label, score = max(rivals, key=lambda found: sign * found[0])
        behind = {way: best_of(runs, ours, way, question) for way in (PLAIN, CHOSEN)}
        lost = {w: v for w, v in behind.items() if v is not None and sign * v < sign * value}
        if lost:
            than = " and ".join(f"{plain(v)} by {'max p' if w == PLAIN else 'its chosen score'}" for w, v in lost.items())  # fmt: skip
            said.append(
                f"{label} by {score}, which costs nothing, has {question.name} {plain(value)}; "
                f"the best one-vs-all formulation has {than}"
            )
    return said


def best_free(runs: Sequence[Run], label: str, question: Question) -> tuple[float, str, str] | None:
    """The best of the scores that need no fit, max p apart."""
    mine = of_label(runs, label)
    name = question.best(mine, [s for s in FREE if s != PLAIN])
    if name is None:
        return None
    return fmean(row["value"] for row in question.rows(mine, name)), label, name


def best_of(
    runs: Sequence[Run], names: Sequence[str], way: str, question: Question
) -> float | None:
    """The best mean of any of the formulations."""
    found = (by_way(way, of_label(runs, name), question)[0] for name in names)
    means = [fmean(row["value"] for row in rows) for rows in found if rows]
    return (max if question.higher else min)(means) if means else None


COARSE = 4 * TOLERANCE  # of curves by other scores than max p: there are many


def points(runs: Sequence[Run], name: str, thin: tuple[str, str]) -> list[Row]:
    """The points of every score's curves, which say if their score is the run's chosen or best one."""
    best = {label: AUROC.best(of_label(runs, label)) for label in labels(runs)}
    found: list[Row] = []
    for run in runs:
        for curve in select.curves(run, name, every=True):
            score = curve.get("score", PLAIN)
            head = {"label": run.label, "seed": run.seed, "dataset": curve["dataset"]}
            head |= {"score": score, CHOSEN: score == chosen(run), BEST: score == best[run.label]}
            tolerance = TOLERANCE if score == PLAIN else COARSE
            columns = thinned(curve["columns"], *thin, tolerance)
            found.extend(head | point for point in select.unfold(columns))
    return found
