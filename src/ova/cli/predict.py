"""`ova predict`: what a trained model says about new inputs."""

from pathlib import Path
from typing import Annotated

import typer


def predict(
    model: Annotated[Path, typer.Argument(help="Folder that `ova train` wrote.")],
    inputs: Annotated[
        list[str],
        typer.Argument(
            help="Images or folders; CSV, TSV, Parquet or .txt files; - reads standard input.",
            metavar="INPUT...",
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write .csv, .jsonl or .parquet instead.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="Answer above this (printed) confidence; the promise is then void."),
    ] = None,
) -> None:
    """Print label or "none of the above", confidence and runner-up for each input, in order.

    The confidence is calibrated: of answers with 0.8, some 80 % are right for inputs like those
    trained on. The runner-up's is what a top answer with its score would have. Of an input that is
    refused, the runner-up is the best guess. A row that cannot be used is marked and counted; then
    the exit code is 1.

        ova predict model/ new.csv --out answers.csv

        echo "what is my balance" | ova predict model/ -
    """
    import sys

    from ova.modelfolder.answer import answers
    from ova.modelfolder.folder import load
    from ova.modelfolder.write import check, counted, separated, write
    from ova.userdata.gather import NOTHING

    if out is not None:
        check(out)  # before any work
    counts = {"rows": 0, "bad": 0, "refused": 0}
    loaded = load(model)
    rows = counted(answers(loaded, inputs, threshold), counts, NOTHING)
    if out is not None:
        write(out, rows)
    else:
        separated(rows, sys.stdout, "\t")
    limit = loaded.shown.value if threshold is None else threshold
    told = f"{counts['rows']} inputs, {counts['refused']} {NOTHING} (not above {limit:.6g})"
    typer.echo(f"{told}, {counts['bad']} could not be used", err=True)
    if loaded.calibration is None:
        typer.echo(f"the confidences are uncalibrated: {loaded.why_not}", err=True)
    raise typer.Exit(1 if counts["bad"] else 0)
