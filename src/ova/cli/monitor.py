"""`ova monitor`: has the world moved since the model was trained, and is its promise still kept?"""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ova.cli import options
from ova.errors import BadInput
from ova.modelfolder import outputs


def monitor(
    model: options.ModelFolder,
    logs: Annotated[
        list[Path],
        Argument(
            metavar="LOG...",
            help="What `ova predict --out` or a server wrote (.csv, .jsonl, .parquet), in order.",
        ),
    ],
    label: Annotated[
        str,
        Option(
            help="Column with the true label, empty where it is not known; "
            "else it is 'label (given)', truth or target."
        ),
    ] = "",
    labels: Annotated[
        Path | None,
        Option(
            metavar="FILE", help="Instead: a file of ids and labels (--label names the column)."
        ),
    ] = None,
    id: Annotated[  # noqa: A002
        str, Option("--id", help="Column by which labels of a file are put to the rows of the log.")
    ] = "id",
    false_alarms: Annotated[
        float, Option(help="The chance that there is ever a false alarm, however long it watches.")
    ] = 0.01,
    state: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Remember in which order labels came, from call to call: needed where labels come later.",
        ),
    ] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Write a page with the curves.")
    ] = None,
    json: Annotated[
        Path | None,
        Option("--json", metavar="FILE", help="Write all that was found, for machines."),
    ] = None,
) -> None:
    """Say whether the inputs are still like those that the promise rests on, and whether it is kept.

    Scores need no labels: they and the best guesses are compared with the rows that carry the
    promise. Labels, of some answers drawn by lot, tell whether the promise is kept. Look as often as
    you like: the chance of ever seeing a false alarm is --false-alarms in all. An alarm stays.

    Exit code 0: no alarm; 3: the inputs have changed; 4: a promise is broken; 5: both. (2 is bad
    input, as everywhere.)

        ova predict model/ monday.csv --out monday-answers.csv --keep id

        ova monitor model/ monday-answers.csv tuesday-answers.csv --labels checked.csv --id id --state watch.json

        ova monitor model/ log.jsonl --out watch.html --json watch-found.json
    """
    from ova.files import write_json
    from ova.modelfolder.log import Labels
    from ova.modelfolder.watching import watch

    if not 0 < false_alarms < 1:
        raise BadInput(f"--false-alarms {false_alarms} is no chance; give a number between 0 and 1")
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise BadInput(f"--out {out}: the page is HTML; name a file that ends in .html")
    inputs = [*logs, *([labels] if labels else [])]
    outputs.check_files({"--out": out, "--json": json, "--state": state}, inputs)
    if out is not None:
        from ova.errors import require

        require("report")  # before any work
    where = Labels(label, labels, id)
    found = watch(model, logs, where, false_alarms=false_alarms, state=state)
    for line in found.lines():
        typer.echo(line)
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if json is not None:
        write_json(json, found.to_json())
    if out is not None:
        from ova.modelfolder.watching_page import write_watch

        write_watch(found, out)
    raise typer.Exit(found.exit_code)
