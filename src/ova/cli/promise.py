"""`ova promise`: a trained model's threshold and confidences fitted on other rows, without training."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ova.cli import options
from ova.modelfolder import outputs


def promise(
    model: options.ModelFolder,
    data: Annotated[
        Path, Argument(help="Labelled rows that had no part in the training: a file or a folder.")
    ],
    out: Annotated[
        Path, Option("--out", "-o", help="Folder of the model with its new promise.")
    ] = Path("model-promise"),
    label: Annotated[str, Option(help="Column of labels ('label' if not named).")] = "",
    accuracy: Annotated[
        float | None, Option(help="Accuracy to promise for what is answered, e.g. 0.95.")
    ] = None,
    coverage: Annotated[
        float | None, Option(help="Share of inputs to answer, to promise, e.g. 0.9.")
    ] = None,
    leak: Annotated[
        float | None,
        Option(help="Share of inputs of no class that is answered at most; needs such rows."),
    ] = None,
    certainty: Annotated[float, Option(help="How surely the promise holds.")] = 0.95,
) -> None:
    """Fit threshold, confidences and sets of a model anew on labelled rows; nothing is trained.

    For a model of few examples when more rows have come, or when the inputs are no longer those of
    the training. The promise is then about inputs like these rows, each different one counted once, and holds only
    if they had no part in the training. Labels that the model does not know count as none of the classes.
    Without a wish it is the promise that the model has. The network and its score stay as they are.

        ova promise model/ more.csv --label folder --out model2/

        ova promise model/ more.csv --label folder --accuracy 0.95 --out model2/
    """
    outputs.check_folder("--out", out, [model, data])
    from ova.modelfolder.folder import load
    from ova.modelfolder.renew import check_out, renewed, save
    from ova.posthoc.threshold import Promise

    check_out(out)
    loaded = load(model)
    found = renewed(loaded, data, label, Promise(accuracy, coverage, leak, certainty))
    save(loaded, model, out, found)
    for note in found.notes:
        typer.echo(f"note: {note}")
    for line in load(out).shown.lines(loaded.classes):
        typer.echo(line)
    if isinstance(found.calibration, str):
        typer.echo(f"the confidences are uncalibrated: {found.calibration}")
    typer.echo(f"next: ova predict {out} INPUT")
