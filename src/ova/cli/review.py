"""`ova review`: what a model refused, in groups that a person can name."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ova.cli import options

SHOWN = 10  # groups that are printed


def review(
    model: options.ModelFolder,
    log: Annotated[
        list[str],
        Argument(
            help="What `ova predict` or a server wrote (.csv, .jsonl, .parquet), or the inputs.",
            metavar="LOG...",
        ),
    ],
    out: Annotated[
        Path, Option("--out", "-o", help="Folder for review.html and review.csv.")
    ] = Path("review"),
    below: Annotated[
        float,
        Option(help="Answers with a lower confidence are looked at too; 0: refused inputs only."),
    ] = 0.5,
    images: Annotated[
        Path | None,
        Option(
            metavar="FOLDER",
            help="Where the images are that a server's log has by name or by hash.",
        ),
    ] = None,
) -> None:
    """Group the inputs that were refused, and answers that look wrong, for a person to name.

    They are grouped by the features of the model, the largest group first, with the words, columns
    or pictures that are typical of it and the nearest classes: to look at in review.html, to fill in in
    review.csv. Its column group_label is for a whole group, label for a row: a class of the model,
    'new: NAME', 'none' or 'leave'. A filled-in sheet makes a better model:

        ova predict model/ new.csv --out answers.csv

        ova review model/ answers.csv --out review

        ova extend model/ review/review.csv --data mails.csv --out model2

    The log of a server is read as it is:

        ova review model/ served.jsonl --images photos/
    """
    from ova.modelfolder.folder import load
    from ova.modelfolder.review.review import PAGE, SHEET, carry_out

    found = carry_out(load(model), model, log, out, below, images)
    for line in found.lines():
        typer.echo(line)
    for number, rows in enumerate(found.members[:SHOWN], 1):
        words = " ".join(found.words[number - 1]) or ", ".join(found.nearest[number - 1])
        typer.echo(f"{number:>3} {len(rows):>6}  {words}")
    typer.echo(f"look at {out / PAGE}, fill in {out / SHEET}")
    typer.echo(f"next: ova extend {model} {out / SHEET} --data DATA --out MODEL2")
