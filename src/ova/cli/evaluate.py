"""`ova evaluate`: measure predictions from anywhere."""

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

SEVERAL = ("--ood", "--shift")


class SeveralFiles(TyperCommand):
    """A command whose options --ood and --shift take all file names up to the next option.

    The shell turns `--shift fog/*.parquet` into many names; each must not need its own `--shift`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its names."""
        return super().parse_args(ctx, spread(args))


def spread(args: list[str]) -> list[str]:
    """Write `--ood a b` as `--ood a --ood b`.

    >>> spread(["x.csv", "--ood", "a", "b", "-o", "c"])
    ['x.csv', '--ood', 'a', '--ood', 'b', '-o', 'c']
    """
    found: list[str] = []
    option, fresh = "", False
    for arg in args:
        if arg.startswith("-"):
            option, fresh = (arg, True) if arg in SEVERAL else ("", False)
        elif option and not fresh:
            found.append(option)
        else:
            fresh = False
        found.append(arg)
    return found


def evaluate(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Predictions on the test set, a file per model."),
    ],
    ood: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE...",
            help="Predictions on examples of none of the classes: files or folders.",
        ),
    ] = None,
    shift: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE...", help="Predictions on changed examples: fog-3.csv, ..."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Also write a report, one HTML file.")
    ] = None,
    one_vs_all: Annotated[
        bool,
        typer.Option("--one-vs-all", help="Probabilities are one per class and need not sum to 1."),
    ] = False,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Redraw the examples so often for 95 % intervals; 0: never.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the redrawing.")] = 0,
    measurements: Annotated[
        Path, typer.Option(help="Where the rows go, one JSON object per line.")
    ] = Path("measurements.jsonl"),
) -> None:
    """Measure accuracy, calibration, selective answering and OOD detection of any predictions.

    FILE is .parquet, .csv or .npz with `target` and either all probabilities (a matrix `probs`,
    or columns p_0, p_1, ...) or `confidence` and `prediction`. Logits are refused. With several
    models an OOD or shift file belongs to the model whose name its own name starts with, or in
    whose folder it lies. For example:

        ova evaluate forest.csv --ood noise.csv

        ova evaluate softmax.npz ova.npz --ood softmax-svhn.npz ova-svhn.npz -o report.html
    """
    from ova.errors import require

    if output is not None:
        require("report")
    from ova.cli.evaluated import evaluate_files, show, write_all
    from ova.cli.roles import assign
    from ova.metrics import Draws

    models = assign(files, ood or [], shift or [])
    draws = Draws(count=bootstrap, seed=seed) if bootstrap else None
    results = evaluate_files(models, normalised=not one_vs_all, draws=draws)
    write_all(results, measurements, output)
    show(results)
    typer.echo(f"wrote {measurements}" + (f" and {output}" if output else ""))
