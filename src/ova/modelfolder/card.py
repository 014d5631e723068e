"""A model card: what a model answers, what it promises and what was measured, as Markdown."""

from pathlib import Path

from ova.modelfolder.folder import load
from ova.modelfolder.names import RUN
from ova.training.loggers.logged import measured

FEW = 50  # classes that are named
SHOWN = ("test_accuracy", "test_ece", "test_brier", "test_aurc")


def card(folder: Path, repo: str) -> str:
    """The card of the model in a folder; names of classes are shown as code, so that none is Markdown."""
    model = load(folder)
    named = ", ".join(map(code, model.classes[:FEW])) + (
        ", ..." if len(model.classes) > FEW else ""
    )
    numbers = measured(folder / RUN) if (folder / RUN).is_dir() else {}
    rows = [
        f"| {name.removeprefix('test_')} | {numbers[name]:.4f} |"
        for name in SHOWN
        if name in numbers
    ]
    parts = [
        "---\nlibrary_name: ova\ntags:\n- ova\n- uncertainty\n- out-of-distribution\n---",
        f"# {repo}",
        f'A classifier of {model.kind}s that says "none of the above", trained by ova '
        f"({code(str(model.facts['formulation']))}).",
        f'```python\nimport ova\n\nmodel = ova.load("hf://{repo}")\nmodel.predict(inputs)\n```',
        f"## Classes\n{len(model.classes)}: {named}",
        "## Promise\n" + "\n".join(f"- {code(line)}" for line in model.shown.lines(model.classes)),
        "It holds for inputs that are like the rows it was fitted on, and does not survive a shift.",
        f"The score that decides is {code(model.evidence.name)}: {code(model.evidence.why)}",
    ]
    if rows:
        parts.append("\n".join(["## Measured on its test rows", "| | |", "|---|---|", *rows]))
        parts.append("More in `report.html`.")
    return "\n\n".join(parts) + "\n"


def code(text: str) -> str:
    """A text as code, whatever is in it.

    >>> code("a`b"), code("<b>")
    ("`a'b`", '`<b>`')
    """
    return "`" + " ".join(text.replace("`", "'").split()) + "`"
