"""`ova list`: what there is, by name."""

from typing import Annotated

import typer


def catalogue(
    kind: Annotated[
        str,
        typer.Argument(
            help="all, experiments, formulations, models, datasets, metrics, corruptions or settings."
        ),
    ] = "all",
) -> None:
    """List experiments, formulations, models, data sets, metrics, corruptions and recipe settings."""
    from rich.console import Console
    from rich.table import Table

    from ova.cli.tables import TABLES
    from ova.errors import BadInput, pick, without

    console = Console()
    names = list(TABLES) if kind == "all" else [kind]
    for name in names:
        table = Table(title=name, title_justify="left", box=None, show_header=False, padding=(0, 2))
        try:
            rows = pick(TABLES, name, "list")()
        except ModuleNotFoundError as error:
            if kind != "all" or not isinstance(said := without(error), BadInput):
                raise
            rows = [(str(said), "")]  # the other lists are still worth to be seen
        for row in rows:
            table.add_row(*row)
        console.print(table, "", highlight=False)
