"""The tables of the documents, one function each, from the committed results."""

from statistics import fmean

from committed import AUROC, Number, cell, experiments, markdown, on, runs

from ova.data.drawings import LADDERS
from ova.nn.formulations import DEFAULT, PAPER
from ova.predictions import SetName
from ova.report import select
from ova.report.intervals import BOTH
from ova.report.paper import TABLES, Column, Printed
from ova.report.runs import labels
from ova.report.summary import MEASURES
from ova.scores import SCORES
from ova.training.run_folder import Run

VARIANTS = "digits-variants"  # every formulation: a table of its own
SHOWN = (*PAPER, DEFAULT)
DESK = ("digits", "clinc-desk", "omniglot", "cifar10-desk", "cifar100-desk")
THRESHOLD = 0.7

HEADLINE = {
    "accuracy": on("accuracy", "test"),
    "ECE": on("ece", "test"),
    "ECE under shift": on("ece", "shift"),
    "AUROC": AUROC,
}
EVIDENCE = {
    "accuracy": on("accuracy", "test"),
    "ECE": on("ece", "test"),
    "calibrated": on("ece", "test", calibrated=True),
    "accuracy, shift": on("accuracy", "shift"),
    "ECE, shift": on("ece", "shift"),
    "shift, calibrated": on("ece", "shift", calibrated=True),
    "AUROC": AUROC,
}
CLAIMS = {
    "accuracy": on("accuracy", "test"),
    "confidence": on("confidence", "test"),
    "ECE": on("ece", "test"),
    "accuracy, shift": on("accuracy", "shift"),
    "ECE, shift": on("ece", "shift"),
    "ECE, shift 1": on("ece", SetName.shift("*", 1)),
    "ECE, shift 5": on("ece", SetName.shift("*", 5)),
    "AUROC": AUROC,
    "centre offset": on("centre_offset", "train"),
}


def headline() -> str:
    """The table of the README: the desk experiments, one line per number."""
    rows = []
    for experiment in DESK:
        found = runs(experiment)
        for title, number in HEADLINE.items():
            cells = [cell(found.get(name, []), number) for name in SHOWN]
            rows.append([f"{experiment}, {title}", *cells])
    return markdown([f"`{name}`" for name in SHOWN], rows)


def every_experiment() -> str:
    """One table per experiment, the one with all variants apart."""
    shown = (name for name in experiments() if name != VARIANTS)
    return "\n\n".join(f"**{name}**\n\n{one_experiment(name)}" for name in shown)


def one_experiment(experiment: str) -> str:
    """The main numbers of an experiment, each outside set in a column of its own."""
    found = runs(experiment)
    shown = columns(next(iter(found.values()))[0])
    rows = [
        [f"`{name}`", str(len(seeds)), *(cell(seeds, number) for number in shown.values())]
        for name, seeds in found.items()
    ]
    return markdown(["seeds", *shown], rows)


def columns(run: Run) -> dict[str, Number]:
    """What the table of an experiment shows, where its runs have it."""
    shown = {
        "accuracy": on("accuracy", "test"),
        "ECE": on("ece", "test"),
        **{f"AUROC {name.short}": on("auroc", name) for name in select.outside([run])},
        "confidence far away": on("confidence", SetName.ood("ring")),
        "accuracy, shift 5": on("accuracy", SetName.shift("*", 5)),
        "ECE, shift 5": on("ece", SetName.shift("*", 5)),
    }
    return {title: number for title, number in shown.items() if number.of(run)}


def variants() -> str:
    """Every formulation on the digits."""
    return one_experiment(VARIANTS)


def beside_the_paper() -> str:
    """What the paper prints, and ours of the desk experiments, which train much shorter."""
    rows = []
    for data, printed in reversed(TABLES.items()):
        ours = runs(f"{data}-desk")
        for column in printed.columns:
            number = on(column.metric, column.dataset)
            pairs = zip(PAPER, column.printed, strict=True)
            cells = [f"{value:.3f} / {cell(ours.get(name, []), number)}" for name, value in pairs]
            rows.append([title(printed, column), *cells])
    return markdown([f"`{name}`" for name in PAPER], rows, corner="paper / ours")


def title(printed: Printed, column: Column) -> str:
    """The name of a printed column, such as `T2 CIFAR-10 against SVHN AUROC`."""
    between = " against " if SetName(column.dataset).outside else ", "
    return f"{printed.name} {printed.data}{between}{column.title}"


def evidence() -> str:
    """What the choice of a formulation rests on: experiments one below the other."""
    names = ("toy", "digits", "clinc-desk", "clinc-none", "omniglot", "omniglot-near")
    rows = []
    for experiment in (*names, "cifar10-desk"):
        rows.append([f"**{experiment}**", *[""] * (len(EVIDENCE) + 1)])
        for name, seeds in runs(experiment).items():
            cells = [cell(seeds, number) for number in EVIDENCE.values()]
            rows.append([f"`{name}`", str(len(seeds)), *cells])
    return markdown(["seeds", *EVIDENCE], rows)


def verdicts() -> str:
    """Who is clearly ahead of whom, of the experiments that were measured so that it can be told."""
    rows = []
    for experiment, found in experiments().items():
        for measure in MEASURES:
            said = measure.verdict(found)
            if said is None or said.basis != BOTH:
                continue
            others = [name for name in labels(found) if name not in (said.best, *said.tied)]
            cells = [[said.best], others, said.tied]
            named = [", ".join(f"`{name}`" for name in each) or "-" for each in cells]
            rows.append([f"{experiment}, {measure.name}", *named])
    return markdown(["best mean", "behind", "no clear difference"], rows)


def ladders() -> str:
    """Omniglot by kind of shift: the means over the five steps of a ladder."""
    shown = {
        f"{ladder}, {what}": Number(metric, lambda name, kind=ladder: name.type == kind, calibrated)
        for ladder in LADDERS
        for what, metric, calibrated in (
            ("accuracy", "accuracy", False),
            ("calibrated ECE", "ece", True),
        )
    }
    rows = [
        [f"`{name}`", *(cell(seeds, number) for number in shown.values())]
        for name, seeds in runs("omniglot").items()
    ]
    return markdown(shown, rows)


def claims() -> str:
    """What the claims of the paper are about: its formulations and ours, experiment by experiment."""
    rows = []
    for experiment in ("toy", "digits", "clinc-desk", "cifar10-desk", "cifar100-desk", "omniglot"):
        found = {name: seeds for name, seeds in runs(experiment).items() if name in SHOWN}
        rows.append([f"**{experiment}**", *[""] * (len(CLAIMS) + 3)])
        for name, seeds in found.items():
            cells = [cell(seeds, number) for number in CLAIMS.values()]
            rows.append([f"`{name}`", str(len(seeds)), *cells, *answered(seeds[0])])
    return markdown(["seeds", *CLAIMS, "right of answered", "answered"], rows)


def answered(run: Run) -> list[str]:
    """Accuracy and share of what is answered above the threshold, the mean over mixed outside sets."""
    mixed = [
        curve["columns"]
        for curve in select.curves(run, "accuracy_confidence")
        if SetName(curve["dataset"]).mixed
    ]
    found = [[at_threshold(curve, name) for curve in mixed] for name in ("accuracy", "answered")]
    known = [[value for value in values if value is not None] for values in found]
    return [f"{fmean(values):.3f}" if values else "-" for values in known]


def at_threshold(columns: dict[str, list[float | None]], name: str) -> float | None:
    """The value where the curve comes nearest to the threshold; none where nothing is answered."""
    away = [abs(float(where or 0) - THRESHOLD) for where in columns["threshold"]]
    return columns[name][away.index(min(away))]


def scores() -> str:
    """Every score, what it needs, and the scores that it is made of."""
    rows = [
        [f"`{name}`", score.about, ", ".join(score.needs), ", ".join(f"`{n}`" for n in score.joins)]
        for name, score in SCORES.items()
    ]
    return markdown(["value, higher is inside", "needs", "made of"], rows, corner="score")
