"""`ova extend`: a model with new classes, fewer, or some put together."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console


def extend(
    model: options.ModelFolder,
    labelled: Annotated[
        Path | None,
        Argument(
            help="The filled-in review.csv of `ova review`, any file of rows with labels, or a folder "
            "of class folders with images.",
        ),
    ] = None,
    out: Annotated[Path, Option("--out", "-o", help="Folder of the new model.")] = Path("model2"),
    data: Annotated[
        Path | None,
        Option(help="What the model was trained from; an extended model holds its rows itself."),
    ] = None,
    test: Annotated[Path | None, Option(help="The --test of the training, if it had one.")] = None,
    outside: Annotated[
        Path | None, Option(help="The --outside of the training, if it had one.")
    ] = None,
    label: Annotated[str, Option(help="Column of labels ('label' if not named).")] = "",
    new: Annotated[
        list[str] | None,
        Option(
            help="A class that is new, where its rows do not say 'new: NAME' (repeat, or commas)."
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        Option(help="Class to remove; its rows become examples of none of the classes (repeat)."),
    ] = None,
    merge: Annotated[
        list[str] | None, Option(help="Classes to put together: A,B=C (repeat).", metavar="A,B=C")
    ] = None,
    refit: Annotated[
        bool | None,
        Option(
            help="Fit all rows of the head, not only the new ones; unasked, where rows that stay answer "
            "inputs of new classes, and held-out rows say that it helps."
        ),
    ] = None,
    accuracy: Annotated[
        float | None,
        Option(help="Accuracy to promise for what is answered; unasked, what was promised before."),
    ] = None,
    coverage: Annotated[
        float | None, Option(help="Share of inputs to answer, to promise, e.g. 0.9.")
    ] = None,
    leak: Annotated[
        float | None,
        Option(help="Share of inputs of no class that is answered at most, to promise."),
    ] = None,
    certainty: Annotated[float, Option(help="How surely the promise holds.")] = 0.95,
    score: Annotated[
        str, Option(help="Score that decides what is refused; empty: the one of before.")
    ] = "",
    skip_bad: Annotated[
        bool, Option(help="Leave out labelled rows that cannot be used instead of stopping.")
    ] = False,
) -> None:
    """Give a model other classes without training its network again.

    The label of a row is a class of the model, 'new: NAME', 'none' (an example of none of the
    classes) or 'leave'. A new class is a new row of the last layer, fitted on the model's own rows and
    the labelled ones; the other rows stay as they are, unless they claim its inputs. Score, confidences and promise
    are fitted anew on rows that took no part. What moved for the classes that stay is printed; if
    the promise does not look kept for them, nothing is written.

        ova extend model/ review/review.csv --data mails.csv --out model2

        ova extend model2/ --remove spam --merge "card,credit card=card" --out model3
    """
    from ova.modelfolder.extend.carry import Wish, carry_out, lines
    from ova.modelfolder.names import REPORT
    from ova.posthoc.threshold import Promise

    wish = Wish(
        out=out,
        labelled=labelled,
        data=data,
        test=test,
        outside=outside,
        label=label,
        new=tuple(options.names(new)),
        remove=tuple(remove or ()),
        merge=tuple(merge or ()),
        wanted=Promise(accuracy, coverage, leak, certainty),
        score=score,
        refit=refit,
        skip_bad=skip_bad,
    )
    made, console = carry_out(model, wish), plain_console()
    for line in lines(made):
        console.print(line, soft_wrap=True, markup=False)
    console.print(f"report: {out / REPORT}", soft_wrap=True)
    console.print(f"next: ova predict {out} INPUT", soft_wrap=True)
