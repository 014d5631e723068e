"""Write the parts of README.md that follow from the repository: the result table and the tree.

python docs/make_readme.py          writes them
python docs/make_readme.py --check  exits with 1 when they are not up to date
"""

import ast
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, stdev

from marked import renew
from paper import FORMULATIONS, TABLES, Printed

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
Table = dict[str, dict[str, list[float]]]


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
    """One table per experiment with committed results: mean and, over seeds, standard deviation."""
    parts = []
    for experiment in sorted(p for p in (ROOT / "results").iterdir() if p.is_dir()):
        table: Table = defaultdict(lambda: defaultdict(list))
        for folder in sorted(p.parent for p in experiment.glob("*/measurements.jsonl")):
            formulation = json.loads((folder / "recipe.json").read_text())["formulation"]
            for name, value in headline(folder):
                table[formulation][name].append(value)
        if table:
            parts.append(f"**{experiment.name}**\n\n{markdown(table)}")
    return "\n\n".join(parts) or "No results are committed yet; `make results` makes them."


def beside_the_paper() -> str:
    """What the paper prints, and the mean of our seeds; the desk runs are much shorter."""
    names = " | ".join(f"`{name}`" for name in FORMULATIONS)
    lines = [f"| paper / ours | {names} |", "|---" * (len(FORMULATIONS) + 1) + "|"]
    for printed in TABLES:
        cells = [
            f"{value:.3f} / {spread(measured(printed, name))}"
            for name, value in zip(FORMULATIONS, printed.values, strict=True)
        ]
        lines.append(f"| T{printed.table} {printed.what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measured(printed: Printed, formulation: str) -> list[float]:
    """Our values of what the paper prints, one per seed."""
    found = []
    for path in sorted((ROOT / "results" / printed.experiment).glob("*/measurements.jsonl")):
        if json.loads((path.parent / "recipe.json").read_text())["formulation"] == formulation:
            rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
            found += [row["value"] for row in rows if is_headline(row, printed)]
    return found


def is_headline(row: dict[str, object], printed: Printed) -> bool:
    """Whether a measurement is the one that the paper prints: uncalibrated, by the largest p."""
    same = (row["dataset"], row["metric"]) == (printed.dataset, printed.metric)
    return same and "calibration" not in row and row.get("score", "max_p") == "max_p"


def headline(folder: Path) -> Iterator[tuple[str, float]]:
    """The numbers of a run that the README shows."""
    for line in (folder / "measurements.jsonl").read_text(encoding="utf-8").split("\n"):
        row = json.loads(line) if line else {"dataset": "", "metric": "", "value": None}
        if "calibration" in row:
            continue  # beside the raw value, not in its place
        where, metric = row["dataset"], row["metric"]
        if where == "test" and metric in ("accuracy", "ece"):
            yield {"accuracy": "accuracy", "ece": "ECE"}[metric], row["value"]
        if where == "shift/*/5" and metric in ("accuracy", "ece"):
            yield f"{metric.replace('ece', 'ECE')}, shift 5", row["value"]
        if metric == "auroc" and row.get("score") == "max_p":
            yield f"AUROC {where.removeprefix('ood/')}", row["value"]
        if metric == "confidence" and where == "ood/ring":
            yield "confidence far away", row["value"]


def markdown(table: Table) -> str:
    """Formulations down, numbers across; the column order is that of the first row."""
    columns = list(next(iter(table.values())))
    lines = ["| | seeds | " + " | ".join(columns) + " |", "|---" * (len(columns) + 2) + "|"]
    order = ("softmax", "dm", "ova", "ova-dm")
    for name in sorted(table, key=lambda n: (order.index(n) if n in order else 9, n)):
        cells = [spread(table[name][column]) for column in columns]
        seeds = max(len(values) for values in table[name].values())
        lines.append(f"| `{name}` | {seeds} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def spread(values: list[float]) -> str:
    """A mean, and ± the standard deviation over seeds."""
    if not values:
        return "not run"
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def main() -> None:
    renew(README, {"results": results, "paper": beside_the_paper, "tree": tree}, "make readme")


if __name__ == "__main__":
    main()
