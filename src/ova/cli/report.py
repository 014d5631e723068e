"""`ova report`: runs to one HTML page, and to figures."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from ova.errors import pick
from ova.modelfolder import outputs


def report(
    runs: Annotated[
        list[Path],
        Argument(help="Run folders, experiments, or folders of experiments.", metavar="RUNS..."),
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
    """Write one page that answers: can I trust it, where does it break, which threshold?"""
    from ova.report.export import FORMATS, write_figures
    from ova.report.page import write_report

    pick(FORMATS, kind, "format")  # before any work
    outputs.check_files({"--output": output}, [])
    if figures is not None:
        outputs.check_folder("--figures", figures)
    write_report(runs, output, baseline=baseline)
    typer.echo(f"{output}: {output.stat().st_size / 1e6:.1f} MB; open it in a browser")
    if figures is not None:
        written = write_figures(runs, figures, kind)
        typer.echo(f"{figures}: {len(written)} figures as {kind}")
