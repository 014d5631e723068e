"""`ova ensemble`: several runs of one recipe answered as one."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from ova.cli.console import plain_console
from ova.modelfolder import outputs


def ensemble(
    runs: Annotated[
        list[Path],
        Argument(
            help="Complete run folders of one recipe, with different seeds.", metavar="RUN..."
        ),
    ],
    out: Annotated[Path, Option("--out", "-o", help="The run folder to write.")],
) -> None:
    """Answer several runs (seeds) of a recipe as one: the mean of their probabilities.

    The mean is calibrated, measured and reported as the predictions of any run; a report shows it as
    its own line, such as `softmax x 5`, where OUT lies beside its members. One-vs-all probabilities stay
    unnormalised. Nothing is trained and no data is needed: the members' predictions are enough. Their order
    changes nothing, and what is complete is not done again. For example:

        ova run digits --only softmax --seeds 5

        ova ensemble runs/digits/digits-softmax-s* --out runs/digits/softmax-x5

        ova report runs/digits

    The mean over passes of one network with dropout on needs no ensemble: `ova run digits --set dropout=0.2
    --set samples=20`.
    """
    from ova.cli.run import summarise
    from ova.training.ensemble import ensemble as carry_out
    from ova.training.progress import show

    console = plain_console()
    outputs.check_folder("--out", out, runs)
    remark = show(carry_out(runs, out), str(out), console)
    if remark:
        console.print(f"note: {remark}", style="yellow", soft_wrap=True)
    summarise([*runs, out], console)
    console.print(f"next: ova report {out.parent} -o report.html", soft_wrap=True)
