"""`ova evaluate`: measure predictions from anywhere."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from typer import Argument, Option
from typer.core import TyperCommand

from ova.cli import options
from ova.cli.console import plain_console
from ova.errors import BadInput, require
from ova.files import Row, sha256, write_lines
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from ova.metrics.model_files import Result
    from ova.predictions import Reading
    from ova.training.run_folder import Run

SEVERAL = ("--ood", "--shift")


class SeveralFiles(TyperCommand):
    """A command whose options --ood and --shift take all file names up to the next option.

    The shell turns `--shift fog/*.parquet` into many names; each must not need its own `--shift`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each of its names."""
        return super().parse_args(ctx, spread(args))


PARSER = SeveralFiles


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
        Argument(
            metavar="FILE...",
            help="Predictions on the test set, a file per model; or a folder of `ova train` and labelled data.",
        ),
    ],
    ood: Annotated[
        list[Path] | None,
        Option(
            metavar="FILE...",
            help="Predictions on examples of none of the classes: files or folders.",
        ),
    ] = None,
    shift: Annotated[
        list[Path] | None,
        Option(metavar="FILE...", help="Predictions on changed examples: fog-3.csv, ..."),
    ] = None,
    output: Annotated[
        Path | None, Option("--output", "-o", help="Also write a report, one HTML file.")
    ] = None,
    one_vs_all: options.OneVsAll = False,
    columns: options.Columns = None,
    logits: options.Logits = "",
    bootstrap: Annotated[
        int, Option(min=0, help="Redraw the examples so often for 95 % intervals; 0: never.")
    ] = 0,
    label: Annotated[
        str, Option(help="Column of labels, of labelled data ('label' if not named).")
    ] = "",
    seed: Annotated[int, Option(min=0, help="Seed of the redrawing.")] = 0,
    measurements: Annotated[
        Path | None, Option(metavar="FILE", help="Also write every row, one JSON object per line.")
    ] = None,
) -> None:
    """Measure accuracy, calibration, selective answering and OOD detection of any predictions.

    FILE is .parquet, .csv, .npz, .jsonl, .arrow or .feather with `target` and either all
    probabilities (lists or a matrix `probs`; columns p_0, p_1, ...; proba_cat, proba_dog; or cat,
    dog) or `confidence` and `prediction`. Labels may be names. What was taken for what is printed;
    --columns says it where it cannot be known, --logits how logits are read. A quoted pattern
    ('part-*.csv') is one model in several files. With several models an OOD or shift file belongs to
    the model whose name its own name starts with, or in whose folder it lies. For example:

        ova evaluate forest.csv --ood noise.csv

        ova evaluate softmax.npz ova.npz --ood softmax-svhn.npz ova-svhn.npz -o report.html

        ova evaluate answers.jsonl --columns target=gold --columns probs=yes,no

    With a MODEL of `ova train` and labelled data it says whether the model is still what it was; the
    exit code is 1 if its promise does not look kept:

        ova evaluate model/ labelled.csv --label species
    """
    if (files[0] / "model.json").is_file():
        raise typer.Exit(tried_again(files, label))
    if output is not None:
        require("report")
    from ova.metrics import Draws
    from ova.metrics.model_files import assign, evaluate_files
    from ova.predictions.foreign import meant

    how = reading(one_vs_all, columns, logits)
    models = assign(files, ood or [], shift or [])
    read = [part for model in models for path in model.sets.values() for part in meant(path)]
    outputs.check_files({"--output": output, "--measurements": measurements}, read)
    draws = Draws(count=bootstrap, seed=seed) if bootstrap else None
    results = evaluate_files(models, how=how, draws=draws)
    if output is not None:
        from ova.report.page import write_page

        runs = [as_run(str(number), result) for number, result in enumerate(results)]
        write_page(sorted(runs, key=lambda run: run.label), output)
    if measurements is not None:
        several = len(results) > 1
        rows = ((r.model.name, row) for r in results for row in [*r.rows, *r.differences])
        named = (({"model": name} if several else {}) | row for name, row in rows)
        write_lines(measurements, named)
    show(results)
    for path in filter(None, (output, measurements)):
        typer.echo(f"wrote {path}")


def reading(one_vs_all: bool, columns: "Sequence[str] | None", logits: str) -> "Reading":
    """How files are to be read; what is guessed of them is printed once."""
    from ova.predictions import Reading
    from ova.predictions.formats.wanted import LINKS, told

    if logits not in ("", *LINKS):
        raise BadInput(f"--logits {logits}: wanted {' or '.join(LINKS)}")
    if one_vs_all and logits == "softmax":
        raise BadInput("--one-vs-all with --logits softmax: a softmax sums to one; wanted sigmoid")
    printed: set[str] = set()

    def tell(guess: str) -> None:
        if guess not in printed:
            printed.add(guess)
            typer.echo(guess, err=True)

    normalised = not one_vs_all and logits != "sigmoid"
    return Reading(normalised, columns=told(columns or ()), logits=logits, tell=tell)


def tried_again(files: "Sequence[Path]", label: str) -> int:
    """Print what a model does on labelled data; 1 if its promise does not look kept."""
    from ova.modelfolder.again import again
    from ova.modelfolder.class_table import lines
    from ova.modelfolder.folder import load

    if len(files) != 2:
        raise BadInput("a model is evaluated on one file or folder: ova evaluate MODEL DATA")
    found = again(load(files[0]), files[1], label)
    for line in (*found.lines, *lines(found.by_class, "these rows")):
        typer.echo(line)
    return 0 if found.kept else 1


def as_run(name: str, result: "Result") -> "Run":
    """What was measured on a model, as the report takes it."""
    from ova.predictions.foreign import meant
    from ova.training.manifest import manifest
    from ova.training.run_folder import Run

    model = result.model
    parts = {(name, path): meant(path) for name, path in model.sets.items()}
    sources = {
        name if file == path else f"{name}/{file.name}": sha256(file)
        for (name, path), files in parts.items()
        for file in files
    }
    recipe = {"experiment": "evaluate", "data": model.sets["test"].name, "formulation": model.name}
    return Run(
        experiment="evaluate",
        id=name,
        label=model.name,
        seed=0,
        recipe={**recipe, "seed": 0},
        measurements=[*result.rows, *result.differences],
        curves=result.curves,
        manifest=manifest(0, sources, device="cpu"),
    )


def show(results: "Sequence[Result]") -> None:
    """Print one table per kind of set, metrics down and models across."""
    console = plain_console()
    for title, wanted in sections(results).items():
        table = Table(title=title, title_justify="left", box=None, header_style="bold")
        table.add_column("", no_wrap=True)
        for result in results:
            table.add_column(result.model.name, justify="right", no_wrap=True)
        for label, values in wanted.items():
            table.add_row(label, *(values.get(r.model.name, "") for r in results))
        console.print(table, "", soft_wrap=True)


def sections(results: "Sequence[Result]") -> dict[str, dict[str, dict[str, str]]]:
    """Title -> label -> model -> printed value, in order of appearance; undefined rows are left out."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for result in results:
        for row in [*result.rows, *result.differences]:
            if row["value"] is not None and (where := section(row)):
                values = found.setdefault(where[0], {}).setdefault(where[1], {})
                values[result.model.name] = printed(row)
    return found


def section(row: "Row") -> tuple[str, str] | None:
    """The table and line of a row; single shifted sets are in the file only."""
    from ova.predictions import SetName

    dataset, metric = SetName(row["dataset"]), str(row["metric"])
    if "against" in row:
        return f"difference to {row['against']}, same examples", metric.removesuffix("_difference")
    if dataset.shifted:
        return None
    if dataset.mean:
        if metric not in ("accuracy", "ece", "confidence"):
            return None
        at = f", severity {dataset.severity}" if dataset.severity else ""
        return "shift, mean over types", metric + at
    score = f" by {row['score']}" if "score" in row else ""
    return dataset, metric + score


def printed(row: dict[str, Any]) -> str:
    """A value with four digits after the point, and its interval if it has one."""
    value = f"{row['value']:z.4f}"
    return f"{value} [{row['low']:z.3f}, {row['high']:z.3f}]" if "low" in row else value
