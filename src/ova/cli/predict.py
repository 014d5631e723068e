"""`ova predict`: what a trained model says about new inputs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from ova.cli import options
from ova.errors import BadInput
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from ova.modelfolder.folder import Model


def predict(
    model: options.ModelFolder,
    inputs: Annotated[
        list[str],
        Argument(
            help="Images or folders; CSV, TSV, .jsonl, Parquet or .txt files; - reads standard input.",
            metavar="INPUT...",
        ),
    ],
    out: Annotated[
        Path | None, Option("--out", "-o", help="Write .csv, .jsonl or .parquet instead.")
    ] = None,
    threshold: Annotated[
        float | None,
        Option(help="Answer above this (printed) confidence; the promise is then void."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        Option(help="Column of the input that goes with its answers: an id, a date (repeat)."),
    ] = None,
    explain: Annotated[
        bool,
        Option(
            "--explain",
            help="Name the nearest training rows, where the model decides by a score that has them.",
        ),
    ] = False,
    sets: Annotated[
        bool,
        Option(
            "--sets",
            help="Also the set of classes that each input may belong to: of inputs of any class it "
            "holds the right one in 95 % of the cases.",
        ),
    ] = False,
    fdr: Annotated[
        float | None,
        Option(
            help="Instead of the threshold: name, of all inputs together, those of none of the "
            "classes, of which at most this share is expected to be wrong, e.g. 0.1."
        ),
    ] = None,
) -> None:
    """Print label or "none of the above", confidence and runner-up for each input, in order.

    The confidence is calibrated: of answers with 0.8, some 80 % are right for inputs like those
    trained on. Of an input that is refused it is that of the best guess, which has a column of its
    own. The runner-up's is what a top answer with its score would have. The score is what the threshold of the model is compared
    with. A row that cannot be used is marked and counted; then the exit code is 1.

        ova predict model/ new.csv --out answers.csv

        ova predict model/ new.csv --out answers.csv --keep id --keep date

        ova predict model/ new.csv --out answers.csv --sets

        ova predict model/ new.csv --out answers.csv --fdr 0.1

        echo "what is my balance" | ova predict model/ -
    """
    import sys
    from collections.abc import Iterable, Iterator

    from ova.modelfolder.answer import Answer, answers, kept
    from ova.modelfolder.batch import named
    from ova.modelfolder.folder import load
    from ova.modelfolder.held import sets_of
    from ova.modelfolder.write import COLUMNS, check, separated, write
    from ova.predictions import NONE_LABEL
    from ova.userdata.encoding import remark

    if threshold is not None and not 0 <= threshold <= 1:
        raise BadInput(f"--threshold {threshold} is no confidence; give a number from 0 to 1")
    if fdr is not None and not 0 < fdr < 1:
        raise BadInput(f"--fdr {fdr} is no share; give a number between 0 and 1")
    if threshold is not None and fdr is not None:
        raise BadInput("--threshold and --fdr each say what is refused; give one of them")
    if out is not None:
        check(out)  # before any work
        outputs.check_files({"--out": out}, inputs)
    loaded = load(model)
    columns = (*COLUMNS, *(["nearest"] if explain else []), *(["set"] if sets else []))
    columns = (*columns, *map(kept, keep or ()))
    above = -1 if fdr is not None else threshold  # of all inputs the best class, to begin with
    having = sets_of(loaded.kept) if sets else None
    said: Iterable[Answer] = answers(
        loaded, inputs, above, explain=explain, sets=having, keep=keep or ()
    )
    if fdr is not None:
        said = named(said, loaded.kept, fdr)
    counts, chance = {"rows": 0, "bad": 0, "refused": 0, "doubtful": 0}, 1 / len(loaded.classes)

    def counted() -> Iterator[Answer]:
        for answer in said:
            counts["rows"] += 1
            counts["bad"] += answer.problem is not None
            counts["refused"] += answer.label == NONE_LABEL
            answered = answer.label not in (None, NONE_LABEL)
            counts["doubtful"] += answered and (answer.confidence or 0) < chance
            yield answer

    if out is not None:
        write(out, counted(), columns)
    else:
        separated(counted(), sys.stdout, columns, "\t")
    for path in map(Path, inputs):
        for line in remark(path):
            typer.echo(f"note: {line}", err=True)
    told = f"{counts['rows']} inputs, {counts['refused']} {NONE_LABEL} ({rule(loaded, threshold, fdr)})"
    typer.echo(f"{told}, {counts['bad']} could not be used", err=True)
    if counts["doubtful"]:
        below = f"{counts['doubtful']} answers have a confidence below chance ({chance:.3g})"
        typer.echo(f"warning: {below}; they are of inputs unlike those trained on", err=True)
    if isinstance(loaded.calibration, str):
        typer.echo(f"the confidences are uncalibrated: {loaded.calibration}", err=True)
    raise typer.Exit(1 if counts["bad"] else 0)


def rule(model: "Model", threshold: float | None, fdr: float | None) -> str:
    """What inputs are refused by, in words."""
    from ova.metrics.choice import PLAIN
    from ova.posthoc.per_class import Thresholds

    if fdr is not None:
        return f"of these at most {fdr:g} are expected to be wrong"
    if threshold is not None:
        return f"not above {threshold:.6g}"
    if isinstance(model.shown, Thresholds):
        return "each class has a threshold"
    of = "" if model.evidence.name == PLAIN else f" of {model.evidence.name}"
    return f"not above {model.shown.value:.6g}{of}"
