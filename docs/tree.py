"""The package as a tree: every name with the first sentence of its docstring."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from committed import ROOT

SOURCE = ROOT / "src" / "ova"


def top() -> str:
    """The names at the top, one line each."""
    return fenced(f"  {name:14} {phrase(path)}" for name, path in entries(SOURCE))


def full() -> str:
    """Every file of the package, below the package it belongs to."""
    return fenced(inner(SOURCE, "  "))


def inner(package: Path, indent: str) -> Iterator[str]:
    """The lines of a package's files and, further in, of the packages inside it."""
    for name, path in entries(package):
        yield f"{indent}{name:{27 - len(indent)}} {phrase(path)}"
        if path.name == "__init__.py":
            yield from inner(path.parent, indent + "  ")


def entries(package: Path) -> Iterator[tuple[str, Path]]:
    """Modules, then packages: what each is called, and the file with its docstring."""
    for path in sorted(package.glob("*.py")):
        if not path.name.startswith("__"):
            yield path.name, path
    for path in sorted(package.glob("*/__init__.py")):
        yield f"{path.parent.name}/", path


def phrase(path: Path) -> str:
    """The first paragraph of a module's docstring, in one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.split("\n\n")[0].replace("\n", " ")


def fenced(lines: Iterable[str]) -> str:
    """Lines below the name of the package, as a block of code."""
    return "\n".join(["```", "src/ova/", *lines, "```"])
