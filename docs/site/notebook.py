"""A notebook as a page of the site: text as it is, cells as code and, if they are run, what they show."""

import copy
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat

FRAMED = re.compile(r"<table [^>]*>")  # without looks of its own a table has those of the site
PICTURES = "import altair; altair.renderers.enable('png')"  # a page cannot fetch what draws them


def page(path: Path, run: bool) -> str:
    """The page; `run` runs the cells for their outputs, which are not kept in the notebook."""
    notebook = nbformat.read(path, as_version=4)
    cells = outputs_of(notebook) if run else notebook.cells
    return "\n\n".join(part for cell in cells for part in parts(cell)) + "\n"


def outputs_of(notebook: Any) -> list[Any]:
    """The cells with their outputs, run in a folder that is then gone."""
    from nbclient import NotebookClient

    made = copy.deepcopy(notebook)
    made.cells.insert(0, nbformat.v4.new_code_cell(PICTURES))
    with tempfile.TemporaryDirectory() as place:
        NotebookClient(made, timeout=600, resources={"metadata": {"path": place}}).execute()
    return list(made.cells[1:])


def parts(cell: Any) -> Iterator[str]:
    """The parts of the page that a cell makes."""
    if cell.cell_type == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    for output in cell.get("outputs", ()):
        if output.output_type == "stream":
            if output.name == "stdout":
                yield f"```text\n{output.text.rstrip()}\n```"
        else:
            yield shown(output.data)


def shown(data: Any) -> str:
    """The best of what an output offers: a picture, a table, or words."""
    if "image/png" in data:
        return f"![Output of the cell](data:image/png;base64,{data['image/png'].strip()})"
    if "text/html" in data:
        lines = (line.strip() for line in data["text/html"].splitlines())
        html = FRAMED.sub("<table>", "".join(line for line in lines if line))
        return f'<div style="overflow-x: auto">\n{html}\n</div>'
    return f"```text\n{data['text/plain']}\n```"
