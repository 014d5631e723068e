"""`ova extend`: a model with new classes, fewer, or some put together."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.errors import BadInput
from ova.modelfolder import outputs


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
        bool, Option("--refit", help="Fit all rows of the head anew, not only the new ones.")
    ] = False,
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
    the labelled ones; the other rows stay as they are, unless --refit. Score, confidences and promise
    are fitted anew on rows that took no part. What moved for the classes that stay is printed; if
    the promise does not look kept for them, nothing is written.

        ova extend model/ review/review.csv --data mails.csv --out model2

        ova extend model2/ --remove spam --merge "card,credit card=card" --out model3
    """
    inputs = [path for path in (model, data, test, outside, labelled) if path is not None]
    outputs.check_folder("--out", out, inputs)
    if labelled is None and not remove and not merge:
        raise BadInput("there is nothing to do: give labelled rows, --remove or --merge")
    from ova.modelfolder.extend import extend as work
    from ova.modelfolder.extend.change import change
    from ova.modelfolder.extend.keep import check_out, keep
    from ova.modelfolder.extend.labelled import read, unknown_to
    from ova.modelfolder.extend.moved import cells
    from ova.modelfolder.extend.moved import lines as moved_lines
    from ova.modelfolder.extend.stored import stored
    from ova.modelfolder.folder import load
    from ova.modelfolder.names import REPORT
    from ova.posthoc.threshold import Promise, check_promise
    from ova.report.extended import Facts, extended_page
    from ova.userdata.request import Request

    console = plain_console()
    check_out(out)
    loaded = load(model)
    fresh = options.names(new)
    found = None
    if labelled is not None:
        found = read(loaded, labelled, fresh, label, skip_bad)
    request = Request(data=data, test=test, outside=outside) if data is not None else None
    rows = stored(loaded, model, request)
    if found is not None:
        found = unknown_to(rows, found)
    wanted = Promise(accuracy, coverage, leak, certainty)
    if wanted.says:
        check_promise(wanted, outside=())
    names = [] if found is None else [n for n in found.names if n not in loaded.classes]
    planned = change(loaded.classes, names, remove or [], merge or [])
    asked = work.Asked(wanted if wanted.says else None, score, refit)
    made = work.extend(loaded, rows, found, planned, asked)
    told = [*work.lines(made), *made.notes]
    promise = [*made.trained.shown.lines(planned.after)]
    facts = Facts(
        done=told,
        promise=promise,
        outcomes=[f"{name}: {outcome}" for name, outcome in made.trained.outcomes.items()],
        kinds=[cells(each) for each in made.moved.values()],
        classes=[cells(each) for each in made.classes],
    )
    keep(made, loaded, model, out, extended_page(facts))
    for line in (*told, *promise, *moved_lines(made.moved, made.classes)):
        console.print(line, soft_wrap=True, markup=False)
    console.print(f"report: {out / REPORT}", soft_wrap=True)
    console.print(f"next: ova predict {out} INPUT", soft_wrap=True)
