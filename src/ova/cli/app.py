"""The command `ova`: joins the commands, and turns every error into a sentence and an exit code."""

import sys
from collections.abc import Callable

import typer

from ova.cli.calibrate import calibrate
from ova.cli.catalogue import catalogue
from ova.cli.corrupt import corrupt
from ova.cli.data import data
from ova.cli.evaluate import SeveralFiles, evaluate
from ova.cli.export import export
from ova.cli.predict import predict
from ova.cli.report import report
from ova.cli.run import run
from ova.cli.train import train
from ova.cli.tune import tune
from ova.errors import BadInput, without

app = typer.Typer(
    name="ova",
    help="Classifiers that know what they do not know: one-vs-all and distance-based last layers.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

# In the order in which a newcomer meets them.
COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "report": report,
    "evaluate": evaluate,
    "calibrate": calibrate,
    "train": train,
    "predict": predict,
    "export": export,
    "tune": tune,
    "list": catalogue,
    "data": data,
    "corrupt": corrupt,
}

# Commands that read their line in a way of their own.
CLASSES = {"evaluate": SeveralFiles}

for _name, _command in COMMANDS.items():
    app.command(_name, cls=CLASSES.get(_name))(_command)


@app.callback(invoke_without_command=True)
def version(
    show: bool = typer.Option(False, "--version", help="Print the version and exit."),
) -> None:
    """Options of `ova` itself."""
    if show:
        from importlib.metadata import version as installed

        typer.echo(f"ova {installed('ova')}")
        raise typer.Exit


def main() -> None:
    """Run the command line; 2 is the user's to mend, 130 is Ctrl-C, 1 is a run that failed."""
    try:
        try:
            app()
        except ModuleNotFoundError as error:
            raise without(error) from None
    except BadInput as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("stopped; the same command goes on from here", err=True)
        sys.exit(130)
