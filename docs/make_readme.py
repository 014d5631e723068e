"""Write what README.md says of the repository: its tables of results and its tree.

python docs/make_readme.py          writes them
python docs/make_readme.py --check  exits with 1 when they are not up to date
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from committed import ROOT, Run, experiments, markdown, runs, spread
from marked import renew
from paper import FORMULATIONS, TABLES

VARIANTS = "digits-variants"  # fifteen formulations: in docs/reproduction.md


def phrase(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def tree() -> str:
    """Every file of the package with its phrase; a package shows its own and lists its files."""
    lines = ["```", "src/ova/"]
    source = ROOT / "src" / "ova"
    for path in sorted(source.iterdir(), key=lambda p: (p.is_dir(), p.name)):
        if path.suffix == ".py" and not path.name.startswith("__"):
            lines.append(f"  {path.name:18} {phrase(path)}")
        elif (path / "__init__.py").exists():
            lines.append(f"  {path.name + '/':18} {phrase(path / '__init__.py')}")
            lines += [f"    {p.name:16} {phrase(p)}" for p in modules(path)]
    return "\n".join([*lines, "```"])


def modules(package: Path) -> Iterator[Path]:
    """The files of a package, without its `__init__`."""
    return (p for p in sorted(package.glob("*.py")) if not p.name.startswith("__"))


def results() -> str:
    """One table per experiment with committed results."""
    shown = (name for name in experiments() if name != VARIANTS)
    return "\n\n".join(f"**{name}**\n\n{headline(name)}" for name in shown)


def columns(run: Run) -> dict[str, tuple[str, str]]:
    """What the tables show of an experiment, as data set and metric, where its runs have it."""
    shown = {
        "accuracy": ("test", "accuracy"),
        "ECE": ("test", "ece"),
        **{f"AUROC {name}": (f"ood/{name}", "auroc") for name in run.outside()},
        "confidence far away": ("ood/ring", "confidence"),
        "accuracy, shift 5": ("shift/*/5", "accuracy"),
        "ECE, shift 5": ("shift/*/5", "ece"),
    }
    return {name: which for name, which in shown.items() if run.values(*which)}


def headline(experiment: str) -> str:
    """The headline numbers of an experiment: mean and, over seeds, standard deviation."""
    found = runs(experiment)
    shown = columns(next(iter(found.values()))[0])
    rows = [
        [f"`{name}`", str(len(seeds))]
        + [spread(v for run in seeds for v in run.values(*which)) for which in shown.values()]
        for name, seeds in found.items()
    ]
    return markdown(["seeds", *shown], rows)


def beside_the_paper() -> str:
    """What the paper prints, and the mean of our seeds; the desk runs are much shorter."""
    rows = []
    for printed in TABLES:
        ours = runs(printed.experiment)
        row = [f"T{printed.table} {printed.what}"]
        for name, value in zip(FORMULATIONS, printed.values, strict=True):
            seeds = ours.get(name, [])
            found = [v for run in seeds for v in run.values(printed.dataset, printed.metric)]
            row.append(f"{value:.3f} / {spread(found) if found else 'not run'}")
        rows.append(row)
    return markdown([f"`{name}`" for name in FORMULATIONS], rows, corner="paper / ours")


def main() -> None:
    parts = {"results": results, "paper": beside_the_paper, "tree": tree}
    renew(ROOT / "README.md", parts, "make readme")


if __name__ == "__main__":
    main()
