"""`ova push`: a trained model to the Hugging Face Hub, with a model card."""

from typing import Annotated

import typer
from typer import Argument, Option

from ova.cli import options


def push(
    model: options.ModelFolder,
    repo: Annotated[
        str, Argument(metavar="OWNER/NAME", help="Repository, made if it is not there.")
    ],
    public: Annotated[
        bool, Option("--public", help="Make a new repository public; without it is private.")
    ] = False,
) -> None:
    """Upload a model with its report and a card of what it promises to the Hugging Face Hub.

    Log in first (`hf auth login`). The folder `run`, with the predictions, stays here. A model whose score looks
    at neighbours has training rows as a part of it, which go with it. Everywhere else:

        ova push model/ ann/mails

        python -c "import ova; print(ova.load('hf://ann/mails'))"
    """
    from ova.modelfolder.hub import push as upload

    typer.echo(f"pushed: ova.load({upload(model, repo, public)!r})")
