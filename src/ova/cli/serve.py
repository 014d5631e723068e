"""`ova serve`: a trained model answers over HTTP."""

from pathlib import Path
from typing import Annotated

import typer
from typer import Option

from ova.cli import options
from ova.errors import BadInput, require


def serve(
    model: options.ModelFolder,
    port: Annotated[int, Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    host: Annotated[
        str, Option(help="Address to listen on; 0.0.0.0 lets other machines ask, then say --token.")
    ] = "127.0.0.1",
    log: Annotated[
        Path | None,
        Option(help="Append a JSON line for every row that is answered, for `ova monitor`."),
    ] = None,
    log_hash: Annotated[
        bool, Option("--log-hash", help="Of an input the log has its SHA-256 and nothing else.")
    ] = False,
    false_alarms: Annotated[
        float,
        Option(
            help="The chance that /metrics ever has a false alarm; give `ova monitor` the same."
        ),
    ] = 0.01,
    token: Annotated[
        str,
        Option(
            envvar="OVA_TOKEN",
            help="Answer only who sends it: Authorization: Bearer TOKEN. Others can read a command "
            "line, so better set the variable.",
        ),
    ] = "",
    name: Annotated[
        list[str] | None,
        Option(help="Name of a proxy before this server, by which it is asked (repeat)."),
    ] = None,
    rows: Annotated[int, Option(min=1, help="Inputs that a request may have.")] = 1000,
    letters: Annotated[int, Option(min=1, help="Characters that a text may have.")] = 20_000,
    pixels: Annotated[
        int, Option(min=1, help="Pixels that the images of a request may have together.")
    ] = 50_000_000,
    body: Annotated[int, Option(min=1, help="Bytes that a request may have.")] = 32 << 20,
    seconds: Annotated[
        float, Option(min=0.1, max=3600, help="Time for a request to arrive, and for its answer.")
    ] = 30.0,
    waiting: Annotated[
        int, Option(min=1, help="Rows that may wait for the model; who comes then gets a 503.")
    ] = 10_000,
) -> None:
    """Answer over HTTP, with a page to try the model, until Ctrl-C or SIGTERM.

    Requests that come while the model works are answered together. The answers are those of
    `ova predict`. A row is answered after its line is in the log, so that no answer is missing
    there, whatever happens to the server. What is promised of the answers is at /model, what may be
    sent at /openapi.json, and what was counted at /metrics: there are also the alarms that `ova monitor`
    finds in the log, once inputs are no longer like those that the promise rests on.

        ova serve model/ --log answers.jsonl

        curl localhost:8000/predict -H 'Content-Type: application/json' -d '{"texts": ["hello"]}'

        curl localhost:8000/predict -F images=@cat.jpg -F images=@dog.jpg

        curl 'localhost:8000/predict?explain=true&classes=5' -F file=@new.csv
    """
    require("serve")
    from ova.modelfolder.folder import load
    from ova.modelfolder.server.app import create
    from ova.modelfolder.server.gate import Door
    from ova.modelfolder.server.limits import Limits
    from ova.modelfolder.server.log import Log
    from ova.modelfolder.server.run import LOOPBACK, is_local, listen
    from ova.modelfolder.server.run import serve as run

    if token and not (token.isascii() and token.isprintable() and token == token.strip()):
        raise BadInput("--token has a character that no header can carry; take letters and digits")
    if log_hash and log is None:
        raise BadInput("--log-hash says what is in the log; name one with --log")
    if not 0 < false_alarms < 1:
        raise BadInput(f"--false-alarms {false_alarms} is no chance; give a number between 0 and 1")
    loaded = load(model)
    limits = Limits(body, rows, letters, pixels, seconds, waiting)
    with listen(host, port) as listening:
        written = None if log is None else Log(log)
        if written is not None and written.cut:
            typer.echo(f"{log}: a torn last line of {written.cut} bytes was cut off", err=True)
        if not is_local(host) and not token:
            typer.echo("warning: whoever reaches this machine may ask; --token hinders", err=True)
        hosts = LOOPBACK | {host.lower()} if is_local(host) else frozenset[str]()
        door = Door(token, hosts, frozenset(each.lower() for each in name or ()))
        app = create(
            loaded, limits, log=written, hashed=log_hash, door=door, false_alarms=false_alarms
        )
        watch = app.state.watch
        if isinstance(watch, str):
            typer.echo(f"warning: its answers are not watched: {watch}", err=True)
        elif watch.rows:
            typer.echo(f"{log}: watched on from its {watch.rows} rows", err=True)
        about = f"{model} ({loaded.kind}, {len(loaded.classes)} classes)"
        run(
            app,
            listening,
            seconds,
            lambda at: typer.echo(f"{about} at {at}; Ctrl-C stops", err=True),
        )
    typer.echo("stopped; all that was taken is answered", err=True)
