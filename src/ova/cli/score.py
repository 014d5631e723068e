"""`ova score`: which score tells outsiders and errors best, for outputs of any network."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.errors import BadInput, pick
from ova.files import Row, write_json
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from ova.scores import FittedScores

WIDTH = 170  # of a table with its intervals: a narrow terminal wraps lines, but nothing is cut off
SHOWN = {  # of the rows: the set they are about, the metric, the head of the column
    "AUROC": ("ood/", "auroc"),
    "FPR95": ("ood/", "fpr95"),
    "AUPR in": ("ood/", "aupr_inside"),
    "AUPR out": ("ood/", "aupr_outside"),
    "mixed AURC": ("test+ood/", "aurc"),
}


def score(
    train: Annotated[
        Path, Argument(metavar="TRAIN", help="Features and/or logits of training rows.")
    ],
    test: Annotated[Path, Argument(metavar="TEST", help="The same of test rows.")],
    outside: Annotated[
        list[Path], Option(metavar="FILE", help="The same of rows of none of the classes; repeat.")
    ],
    validation: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Held-out rows of the classes: joints of scores are scaled by them.",
        ),
    ] = None,
    head: Annotated[
        Path | None,
        Option(metavar="FILE", help="The affine last layer: arrays `weight` (K x D) and `bias`."),
    ] = None,
    only: Annotated[
        list[str] | None,
        Option(
            "--score", help="Only these scores (repeat, or separate by commas), asked for or not."
        ),
    ] = None,
    one_vs_all: options.OneVsAll = False,
    columns: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=ARRAY",
            help="Which arrays hold what, where they are not called so (repeat): features=hidden, "
            "logits=, probs=, target=, and of the last layer weight=, bias=.",
        ),
    ] = None,
    bootstrap: Annotated[
        int, Option(min=0, help="Redraw the rows so often for 95 % intervals; 0: never.")
    ] = 200,
    seed: Annotated[int, Option(min=0, help="Seed of the redrawing.")] = 0,
    json: Annotated[Path | None, Option("--json", help="Write all rows, one JSON file.")] = None,
) -> None:
    """Fit every score that applies and measure how well each tells outsiders and errors.

    Files are .npz, .parquet, .safetensors or .npy with `features` (N x D) and/or `logits` (N x K) and
    `target`, of any network, also as OpenOOD writes them. An affine last layer is found from features
    and logits where no file names it. `ova list scores` says what each score is.

        ova score train.npz test.npz --outside svhn.npz --outside textures.npz

        ova score train.npz test.npz --outside far.npz --validation held.npz --score energy,knn

        ova score a.parquet b.parquet --outside c.parquet --columns features=hidden --columns target=gold
    """
    from ova.metrics import Draws
    from ova.metrics.model_files import labels
    from ova.metrics.scored import compared, errors, of_classes, scored
    from ova.scores import SCORES, fit
    from ova.scores.reading import named, read_outputs

    names = options.names(only) or None
    for name in names or ():
        pick(SCORES, name, "score")  # before any reading
    check(train, test, validation, outside)
    inputs = [train, test, *outside, *(path for path in (validation, head) if path is not None)]
    outputs.check_files({"--json": json}, inputs)
    said = named(columns or ())
    of_layer = {name: theirs for name, theirs in said.items() if name in ("weight", "bias")}
    of_rows = {name: theirs for name, theirs in said.items() if name not in of_layer}
    files = {name: read_outputs(path, outside=True, normalised=not one_vs_all, said=of_rows)
             for name, path in zip(labels(outside), outside, strict=True)}  # fmt: skip
    rows_of = {"train": train, "test": test} | ({"validation": validation} if validation else {})
    # The last layer lies in a file of its own, or among the training rows.
    of = dict.fromkeys(rows_of, of_rows) | ({} if head is not None else {"train": said})
    known = {name: read_outputs(path, normalised=not one_vs_all, said=of[name])
             for name, path in rows_of.items()}  # fmt: skip
    layer = read_outputs(head, said=of_layer) if head is not None else known["train"]
    draws = Draws(count=bootstrap, seed=seed) if bootstrap else None
    with bars() as watched:
        fitted = fit(
            watched("train", known["train"]),
            held=watched("validation", known["validation"]) if validation else None,
            head=layer.head,
            names=names,
        )
        inside = scored(fitted, of_classes(watched("test", known["test"])))
        found = list(errors(inside, draws))
        for name, file in files.items():
            far = scored(fitted, watched(name, file))
            steps = watched(f"{name}, intervals", far.values) if draws else far.values
            for one in steps:
                found += compared(name, inside.only(one), far.only(one), draws)
    accuracy = None if inside.right is None else float(inside.right.mean())
    show(found, list(files), fitted, accuracy)
    if json is not None:
        facts = {"accuracy": accuracy, "head": "none" if fitted.head is None else
                 "given" if layer.head is not None else "found"}  # fmt: skip
        write_json(json, {"rows": found, "left_out": dict(fitted.left_out), **facts})
        typer.echo(f"wrote {json}")


def check(train: Path, test: Path, validation: Path | None, outside: list[Path]) -> None:
    """Refuse what would measure scores on the rows that fitted them."""
    for path in (test, *outside, *([validation] if validation else [])):
        if path.resolve() == train.resolve():
            raise BadInput(f"{path} is also the training file; measure on other rows than you fit")
    if validation is not None and validation.resolve() == test.resolve():
        raise BadInput(f"{test} is also --validation; measure on other rows than you fit")


@contextmanager
def bars() -> Iterator[Any]:
    """A function that shows how far an iteration is, on the error stream and only on a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn())
    console = plain_console(stderr=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:

        def watched(name: str, items: Any) -> Iterator[Any]:
            task = bar.add_task(name, total=len(items))
            for item in items:
                yield item
                bar.advance(task, 1 if isinstance(item, str) else len(item))

        yield watched


def show(rows: list[Row], sets: list[str], fitted: "FittedScores", accuracy: float | None) -> None:
    """Print a table per outside set, the mean of all before them, best AUROC first, and what is missing."""
    console = plain_console()
    console.width = max(WIDTH, console.width)
    if accuracy is not None:
        console.print(f"accuracy {accuracy:.4f}\n", soft_wrap=True)
    by = {(r["dataset"], r["metric"], r["score"]): r for r in rows}
    aurc = {s: by["test", "aurc", s] for s in fitted.names if ("test", "aurc", s) in by}
    for title, chosen in {"mean over outside sets": sets, **{s: [s] for s in sets}}.items():
        if title not in sets and len(sets) < 2:
            continue
        table = Table(title=title, title_justify="left", box=None, header_style="bold")
        table.add_column("", no_wrap=True)
        heads = {h: k for h, k in SHOWN.items() if (k[0] + sets[0], k[1], fitted.names[0]) in by}
        for header in (*heads, *(["AURC"] if aurc else [])):
            table.add_column(header, justify="right", no_wrap=True)
        cells = {
            s: [
                [by[start + name, metric, s] for name in chosen] for start, metric in heads.values()
            ]
            for s in fitted.names
        }
        for s in sorted(cells, key=lambda s: -mean(cells[s][0])):
            alone = [printed([aurc[s]])] if aurc else []
            table.add_row(s, *map(printed, cells[s]), *alone)
        console.print(table, "", soft_wrap=True)
    for why in dict.fromkeys(fitted.left_out.values()):
        names = ", ".join(name for name, reason in fitted.left_out.items() if reason == why)
        console.print(f"left out: {names}: {why}", soft_wrap=True)


def mean(rows: list[Row]) -> float:
    """Of the values."""
    return float(sum(row["value"] for row in rows) / len(rows))


def printed(rows: list[Row]) -> str:
    """The mean; the interval too where it is of one set."""
    value = f"{mean(rows):.4f}"
    if len(rows) > 1 or rows[0].get("low") is None:
        return value
    return f"{value} [{rows[0]['low']:.3f}, {rows[0]['high']:.3f}]"
