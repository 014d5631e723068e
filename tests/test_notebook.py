"""The notebook runs as it is, shows tables and pictures, takes public names alone and keeps no outputs."""

import ast
from pathlib import Path

import pytest

import ova

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")
PLACE = Path(__file__).resolve().parents[1] / "docs" / "tutorials" / "notebook.ipynb"


@pytest.fixture
def notebook():
    return nbformat.read(PLACE, as_version=4)


def test_no_outputs_are_kept(notebook):
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert cell.outputs == []
            assert cell.execution_count is None


def test_it_imports_public_names_alone(notebook):
    program = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    used, imported = set(), set()
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            used |= {node.attr} if node.value.id == "ova" else set()
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom):
            imported.add(node.module or "")
    assert {"train", "load", "plot"} <= used <= set(ova.__all__)
    assert imported == {"pandas", "sklearn.datasets", "ova"}


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of what runs notebooks, not of the cells
def test_it_runs_and_shows_tables_and_pictures(notebook, tmp_path):
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=280, resources=where).execute()
    shown = [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        if output.output_type == "execute_result"
    ]
    pages = [output.data["text/html"] for output in shown]
    assert len(pages) == len(shown) >= 7
    assert sum("vega" in page for page in pages) == 3
    assert any("promise" in page for page in pages)
    assert (tmp_path / "model" / "report.html").exists()
