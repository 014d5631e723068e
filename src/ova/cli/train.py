"""`ova train`: a classifier from the user's own data."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from ova.cli import options
from ova.cli.console import plain_console
from ova.cli.interrupt import Interrupt, listening
from ova.errors import BadInput
from ova.modelfolder import outputs

if TYPE_CHECKING:
    from rich.console import Console

    from ova.modelfolder.train import Trained


def train(
    data: Annotated[
        Path,
        Argument(
            help="A folder of class folders with images, or a CSV, TSV, JSON lines or Parquet file."
        ),
    ],
    text: Annotated[
        str, Option(help="Column of texts; without it all columns are numbers or words.")
    ] = "",
    label: Annotated[str, Option(help="Column of labels ('label' if not named).")] = "",
    none: Annotated[
        str, Option(help="Label of rows that are examples of none of the classes.")
    ] = "",
    group: Annotated[
        str,
        Option(
            help="Column of what belongs together (a sender, a patient): its rows stay in one part "
            "and count as one. Of images a regular expression for that part of the file names."
        ),
    ] = "",
    out: Annotated[Path, Option("--out", "-o", help="Folder of the model.")] = Path("model"),
    formulation: Annotated[
        str, Option(help="A name from `ova list formulations`; empty: our choice.")
    ] = "",
    accuracy: Annotated[
        float | None, Option(help="Accuracy to promise for what is answered, e.g. 0.95.")
    ] = None,
    coverage: Annotated[
        float | None, Option(help="Share of inputs to answer, to promise, e.g. 0.9.")
    ] = None,
    leak: Annotated[
        float | None,
        Option(
            help="Share of inputs of no class that is answered at most, to promise, e.g. 0.05; "
            "needs --outside or --none."
        ),
    ] = None,
    per_class: Annotated[
        bool,
        Option(
            "--per-class",
            help="Promise the accuracy for every class at once; classes with too few examples are "
            "never answered, and named.",
        ),
    ] = False,
    pool_rare: Annotated[
        bool,
        Option("--pool-rare", help="With --per-class: one promise for the rare classes together."),
    ] = False,
    certainty: Annotated[float, Option(help="How surely the promise holds.")] = 0.95,
    score: Annotated[
        str,
        Option(
            help="Score that decides what is refused, from `ova list scores`; empty: the one that "
            "refuses best on held-out rows. With max_p the confidence decides."
        ),
    ] = "",
    confidence: Annotated[float | None, Option(hidden=True)] = None,  # its name of before
    test: Annotated[
        Path | None,
        Option(help="Data to report on; labels that DATA has not count as none of the above."),
    ] = None,
    outside: Annotated[
        Path | None,
        Option(
            help="Examples of none of the classes: a third may choose the score, the others are to report "
            "on; half of those for --leak."
        ),
    ] = None,
    model: Annotated[str, Option(help="A name from `ova list models`.")] = "",
    encoder: Annotated[
        str,
        Option(
            help="A pre-trained network to start from: minilm or mpnet for texts, dinov2 for images, or the "
            "folder of one of transformers (safetensors)."
        ),
    ] = "",
    frozen: Annotated[
        bool,
        Option(
            help="Leave the encoder's weights as they are: its features are taken once and kept, a "
            "second training on them takes seconds."
        ),
    ] = False,
    cross_fit: Annotated[
        bool | None,
        Option(
            "--cross-fit/--hold-out",
            help="With --frozen: train on all rows and judge each by a head that has not seen it, without a "
            "promise; unasked, where the median class has fewer than 30 rows and no promise is asked for.",
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, Option(help="Column of a table to leave out (repeat).")
    ] = None,
    skip_bad: Annotated[
        bool, Option(help="Leave out rows that cannot be used instead of stopping.")
    ] = False,
    size: Annotated[
        int,
        Option(
            min=0, help="Pixels a side of images; unasked the median of theirs, 16 to 64 at most."
        ),
    ] = 0,
    mirror: Annotated[bool, Option(help="Mirror images at random while training.")] = False,
    balance: Annotated[
        bool | None,
        Option(
            help="Let rare classes count more while training; unasked, where some class is 20 times rarer "
            "than another, both ways are trained and the one that is better on held-out rows is kept."
        ),
    ] = None,
    members: Annotated[
        int,
        Option(
            min=1,
            max=1000,
            help="Networks to train, with seeds that follow from the seed; the mean of their "
            "probabilities answers. So many times the time and the size.",
        ),
    ] = 1,
    minutes: Annotated[
        float | None,
        Option(
            min=0,
            help="Time to train: as many epochs as fit, then the best one; 0: no limit. Images have 10 minutes "
            "unless you say otherwise, or set the epochs.",
        ),
    ] = None,
    seed: Annotated[int, Option(min=0, help="Decides the split and the weights.")] = 0,
    settings: Annotated[
        list[str] | None, Option("--set", help="Field of the recipe, e.g. epochs=5.")
    ] = None,
    accelerator: options.Accelerator = "auto",
    log: options.Log = "",
) -> None:
    """Train a classifier that can say "none of the above" on your images, texts or table.

    Some rows are held out: to stop early and choose the score that decides, to fit threshold and
    confidence, to report. A line says which score decides and why; --score NAME decides otherwise. The model,
    its promise and report.html are written to OUT. Ctrl-C ends the training with the best epoch so far, a
    second one stops; a stopped training goes on with the same command.

        ova train photos/

        ova train mails.csv --text body --label folder

        ova train measurements.csv --label species --accuracy 0.95

        ova train measurements.csv --label species --accuracy 0.95 --per-class

        ova train mails.csv --text body --label folder --none other

        ova train photos/ --members 5

        ova train photos/ --minutes 5

        ova train mails.csv --text body --label folder --group sender

        ova train mails.csv --text body --label folder --score max_p

        ova train mails.csv --text body --label folder --encoder minilm --frozen
    """
    from ova.data.encoders import encoder_folder

    logger = options.logger(log)
    base = encoder_folder(encoder) if encoder else None
    outputs.check_folder("--out", out, filter(None, (data, test, outside, base)))
    from ova.modelfolder.names import RUN
    from ova.modelfolder.train import train as carry_out
    from ova.posthoc.per_class import EachClass
    from ova.posthoc.threshold import Promise
    from ova.training.engine import Machine, launch
    from ova.training.progress import show
    from ova.userdata.gather import gather
    from ova.userdata.request import Request

    console = plain_console()
    if confidence is not None:
        console.print("note: --confidence is called --certainty now", style="yellow")
        certainty = confidence
    if cross_fit is None and (per_class or Promise(accuracy, coverage, leak).says):
        cross_fit = False  # a promise rests on rows that were held out
    request = Request(
        data=data,
        text=text,
        label=label,
        none=none,
        group=group,
        formulation=formulation,
        model=model,
        encoder=base,
        frozen=frozen,
        cross_fit=cross_fit,
        test=test,
        outside=outside,
        drop=tuple(drop or ()),
        skip_bad=skip_bad,
        mirror=mirror,
        size=size,
        balance=balance,
        seed=seed,
        settings=(*(settings or ()), *([f"members={members}"] if members > 1 else [])),
    )
    if pool_rare and not per_class:
        raise BadInput("--pool-rare is of a promise for every class: add --per-class")
    wanted = Promise(accuracy, coverage, leak, certainty)
    if per_class:
        wanted = EachClass(accuracy, coverage, leak, certainty, pool=pool_rare)
    gathered = gather(request)
    task = gathered.task
    sizes = [f"{len(task.train)} to train", f"{len(task.validation)} to stop early"]
    again: tuple[str, ...] = ()
    if gathered.folds is not None:
        sizes[1], again = (
            f"{len(task.validation)} of them judged by cross-fitting",
            gathered.folds.sets,
        )
    sizes += [
        f"{len(make())} {name}" for name, make in task.evaluations.items() if name not in again
    ]
    console.print(
        f"{gathered.kind}: {len(task.classes)} classes; {', '.join(sizes)}", soft_wrap=True
    )
    for note in gathered.notes:
        console.print(f"note: {note}", style="yellow", soft_wrap=True)
    interrupt = Interrupt(console)
    machine = Machine(accelerator=accelerator, minutes=minutes, asked=interrupt)
    fabric = launch(machine, gathered.recipe.precision)
    work = interrupt.watched(carry_out(fabric, gathered, out, machine, wanted, score))
    if logger:
        from ova.training.loggers.board import Logged
        from ova.training.loggers.logged import logged

        work = logged(work, Logged(out / RUN, str(out), "ova train"), logger)
    with listening(interrupt):
        trained = show(work, str(out), console)
    tell(trained, task.classes, out, console)


def tell(trained: "Trained", classes: Sequence[str], out: Path, console: "Console") -> None:
    """Print what the model is, and what it does on rows that it has not seen."""
    from ova.modelfolder.class_table import WARNING, lines
    from ova.modelfolder.crossed import CROSSED
    from ova.modelfolder.names import REPORT

    decides = f"the score {trained.evidence.name} decides: {trained.evidence.why}"
    console.print(decides, soft_wrap=True)
    style = None if trained.shown.promised else "red"
    for line in trained.shown.lines(classes):
        console.print(line, style=style, soft_wrap=True)
    for name, outcome in trained.outcomes.items():
        console.print(f"{name}: {outcome}", soft_wrap=True)
    if trained.balance:
        console.print(trained.balance, soft_wrap=True)
    crossed = any(name.endswith(CROSSED) for name in trained.outcomes)
    for line in lines(trained.by_class, "the cross-fitted rows" if crossed else "the test rows"):
        style = "yellow" if line.startswith(WARNING) else None
        console.print(line, style=style, soft_wrap=True, markup=False)
    if isinstance(trained.calibration, str):
        why = f"the confidences are uncalibrated: {trained.calibration}"
        console.print(why, soft_wrap=True)
    console.print(f"report: {out / REPORT}", soft_wrap=True)
    console.print(f"next: ova predict {out} INPUT", soft_wrap=True)
