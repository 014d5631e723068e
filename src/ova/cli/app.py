"""The command `ova`: joins the commands, and turns every error into a sentence and an exit code."""

import sys
from importlib import import_module

import typer

from ova.cli.console import print_anything
from ova.errors import BadInput, mendable

app = typer.Typer(
    name="ova",
    help="Classifiers that know what they do not know: one-vs-all and distance-based last layers.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

# In the order in which a newcomer meets them: the command, and the file and function of that name.
COMMANDS = {
    "run": "run",
    "ensemble": "ensemble",
    "report": "report",
    "evaluate": "evaluate",
    "calibrate": "calibrate",
    "score": "score",
    "train": "train",
    "predict": "predict",
    "monitor": "monitor",
    "serve": "serve",
    "review": "review",
    "extend": "extend",
    "export": "export",
    "promise": "promise",
    "push": "push",
    "tune": "tune",
    "list": "catalogue",
    "data": "data",
    "corrupt": "corrupt",
}


def add(command: str, file: str) -> None:
    """Make a file of this package a command; its `PARSER`, if it has one, reads the line."""
    module = import_module(f"ova.cli.{file}")
    app.command(command, cls=getattr(module, "PARSER", None))(getattr(module, file))


for _command, _file in COMMANDS.items():
    add(_command, _file)


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
    print_anything()
    try:
        try:
            app()
        except (ImportError, OSError, MemoryError, RuntimeError, UnicodeError) as error:
            raise mendable(error) from error
    except BadInput as error:
        typer.secho(f"error: {error}", fg="red", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.secho("stopped; the same command goes on from here", err=True)
        sys.exit(130)
