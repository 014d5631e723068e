"""`ova report`: runs to one HTML page, and to figures."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ova.errors import pick
from ova.modelfolder import names, outputs


def report(
    runs: Annotated[
        list[Path],
        Argument(
            help="Run folders, experiments, folders of experiments, or models of `ova train`.",
            metavar="RUNS...",
        ),
    ],
    output: Annotated[Path, Option("--output", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    baseline: Annotated[
        Path | None, Option(help="Earlier runs, to show differences and their intervals.")
    ] = None,
    figures: Annotated[Path | None, Option(help="Also write each figure into this folder.")] = None,
    kind: Annotated[str, Option("--format", help="Of the figures: png, svg or pdf.")] = "png",
) -> None:
    """Write one page that answers: can I trust it, where does it break, which threshold?

    Models of `ova train` are compared by the names of their folders. The page of one model is the
    one that its training wrote.

        ova report runs/digits

        ova report cats/ dogs/ -o both.html

        ova report model/
    """
    from ova.files import write_text
    from ova.report.export import FORMATS, write_figures
    from ova.report.page import write_report

    pick(FORMATS, kind, "format")  # before any work
    outputs.check_files({"--output": output}, [])
    if figures is not None:
        outputs.check_folder("--figures", figures)
    if len(runs) == 1 and baseline is None and (page := own_page(runs[0])):
        write_text(output, page.read_text("utf-8"))
    else:
        write_report(runs, output, baseline=baseline)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")
    if figures is not None:
        written = write_figures(runs, figures, kind)
        typer.echo(f"{figures}: {len(written)} figures as {kind}")


def own_page(folder: Path) -> Path | None:
    """The page that a training left in a model folder."""
    page = folder / names.REPORT
    return page if (folder / names.MODEL).is_file() and page.is_file() else None
