"""`ova data`: what data is on this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from typer import Option

from ova.cli.console import plain_console


def data(
    data_dir: Annotated[
        Path | None, Option("--data-dir", help="The data folder (else OVA_DATA).")
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object per split, hashes in full.")
    ] = False,
) -> None:
    """List the data that is present: read and checked, with counts and SHA-256.

    The first time images are decoded, which takes half a minute; the result is kept in the cache.
    """
    import json
    from dataclasses import asdict

    from ova.data.inventory import inventory
    from ova.data.sources import places

    if as_json:
        for item in inventory(data_dir):
            typer.echo(json.dumps({**asdict(item), "sources": dict(item.sources)}))
        return

    looked = ", ".join(map(str, places(data_dir)))
    table = Table("data", "examples", "classes", caption=f"looked in {looked}")
    table.add_column("files", overflow="fold")
    table.add_column("SHA-256", no_wrap=True)
    console = plain_console()
    with console.status("reading"):
        for item in inventory(data_dir):
            table.add_row(
                item.name,
                f"{item.count:,}" if item.count is not None else "",
                str(item.classes or ""),
                "\n".join(name for name, _ in item.sources) or item.state,
                "\n".join(digest[:12] for _, digest in item.sources),
            )
            if item.sources and item.state != "present":
                table.add_row("", "", "", Text(item.state, style="red"), "")
    console.print(table)
