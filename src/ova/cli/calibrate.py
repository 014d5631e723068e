"""`ova calibrate`: confidences that are as often right as they say, for predictions from anywhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.cli.evaluate import reading
from ova.errors import BadInput, pick
from ova.files import write_beside, write_json
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from ova.posthoc.calibration import Calibration
    from ova.predictions import Predictions

WRITTEN = (".parquet", ".csv")


def calibrate(
    file: Annotated[Path, Argument(metavar="FILE", help="Predictions to calibrate.")],
    fit: Annotated[
        Path, Option(metavar="FILE", help="Predictions of the same model on held-out examples.")
    ],
    method: Annotated[
        str | None,
        Option(
            help="temperature, top, beta or isotonic. Without it: temperature where both files have "
            "all probabilities of a softmax, else top."
        ),
    ] = None,
    group: Annotated[
        str,
        Option(
            help="Column of --fit that says what belongs together (copies, photos of one thing): one "
            "row of each group is fitted on. Without it all rows must be independent."
        ),
    ] = "",
    out: Annotated[
        Path | None,
        Option("--out", "-o", help="Write the predictions with new confidences, .parquet or .csv."),
    ] = None,
    json: Annotated[
        Path | None, Option("--json", help="Write the fitted calibration, a small JSON file.")
    ] = None,
    one_vs_all: options.OneVsAll = False,
    columns: options.Columns = None,
    logits: options.Logits = "",
) -> None:
    """Fit a calibration on held-out predictions and apply it to others of the same model.

    Files are those of `ova evaluate`, with `target` and either all probabilities or
    `confidence` and `prediction`, however they are called there. Answers never change, only how sure they are.

        ova calibrate test.csv --fit validation.csv

        ova calibrate test.npz --fit validation.npz --method beta --out calibrated.parquet
    """
    from dataclasses import replace

    from ova.posthoc.calibration import CALIBRATIONS, usual
    from ova.posthoc.independent import one_of_each
    from ova.predictions import read_any
    from ova.predictions.beside import column
    from ova.predictions.checks import check_classes
    from ova.predictions.foreign import meant

    check(file, fit, out)
    outputs.check_files({"--out": out, "--json": json}, [*meant(file), *meant(fit)])
    if method is not None:
        pick(CALIBRATIONS, method, "calibration")  # before any reading
    how = reading(one_vs_all, columns, logits)
    held, p = (read_any(path, how) for path in (fit, file))
    check_classes(held, fit, p, file)
    if group:
        held = held.take(one_of_each(column(fit, group)))
    if p.max_logit is None:  # both are read by what both have
        held = replace(held, max_logit=None)
    whole = held.probs is not None and p.probs is not None
    fitted = CALIBRATIONS[method or usual(held.normalised, whole)].fit(held)
    after = fitted.apply(p)
    show(fitted, p, after)
    if out is not None:
        save(out, after)
        typer.echo(f"wrote {out}")
    if json is not None:
        write_json(json, fitted.to_json())
        typer.echo(f"wrote {json}")


def check(file: Path, fit: Path, out: Path | None) -> None:
    """Refuse what would measure a calibration on its own examples, or an ending that is not written."""
    from ova.predictions.foreign import meant

    known = {part.resolve() for part in (fit, *meant(fit))}
    twice = [part for part in (file, *meant(file)) if part.resolve() in known]
    if twice:
        raise BadInput(
            f"{twice[0]} is also what --fit names; fit on other examples than you measure"
        )
    if out is not None and out.suffix.lower() not in WRITTEN:
        raise BadInput(f"--out must end in {' or '.join(WRITTEN)}, not {out.name!r}")


def show(fitted: "Calibration", before: "Predictions", after: "Predictions") -> None:
    """Print the fit and the calibration metrics before and after."""
    from ova.metrics import METRICS
    from ova.metrics.evaluate import CALIBRATED

    facts = {k: v for k, v in fitted.to_json().items() if k not in ("method", "n", "normalised")}
    numbers = ", ".join(f"{k} {v:.6g}" for k, v in facts.items() if isinstance(v, float))
    typer.echo(f"{fitted.method} on {fitted.n} held-out examples{': ' if numbers else ''}{numbers}")
    table = Table("", "before", "after", box=None, header_style="bold")
    table.add_row("accuracy", *[f"{before.correct.mean():.4f}"] * 2)
    for name in CALIBRATED:
        values = (METRICS[name](p) for p in (before, after))
        table.add_row(name, *("" if v is None else f"{v:.4f}" for v in values))
    plain_console().print(table, soft_wrap=True)


def save(path: Path, p: "Predictions") -> None:
    """Write the predictions: all columns as Parquet, the four that matter as CSV."""
    from ova.predictions import write

    if path.suffix.lower() == ".parquet":
        write(path, p)
        return
    import pyarrow as pa
    from pyarrow import csv

    names = ("id", "target", "prediction", "confidence")
    with write_beside(path) as beside:
        csv.write_csv(pa.table({name: getattr(p, name) for name in names}), beside)
