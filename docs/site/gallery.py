"""The gallery: every committed figure of every experiment, with what the report says of it."""

from pathlib import PurePosixPath

from docs.site.places import ROOT
from ova.experiments import EXPERIMENTS
from ova.report.figures import FIGURES


def pictures() -> dict[str, str]:
    """The committed figures, from files of the repository to those of the site."""
    found = {}
    for experiment in EXPERIMENTS:
        for figure in FIGURES:
            file = f"results/{experiment}/{figure}.png"
            if (ROOT / file).exists():
                found[file] = f"figures/{experiment}/{figure}.png"
    return found


def page() -> str:
    """The page that shows them."""
    lines = ["# Gallery", ""]
    lines += [
        "The committed figures, a section for each experiment; `python results/figures.py` draws them from the runs.",
        "",
    ]
    shown = ""
    for file in map(PurePosixPath, pictures().values()):
        experiment = file.parent.name
        if experiment != shown:
            shown, told = experiment, EXPERIMENTS[experiment].about
            lines += [f"## {experiment}", "", f"{told[:1].upper()}{told[1:]}.", ""]
        figure = FIGURES[file.stem]
        lines += [
            f"**{figure.title}.** {figure.caption}",
            "",
            f"![{figure.title}: {experiment}]({file})",
            "",
        ]
    return "\n".join(lines)
