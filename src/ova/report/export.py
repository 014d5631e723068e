"""The same figures as files for a paper: PNG, SVG or PDF."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ova.errors import pick
from ova.files import write_beside
from ova.report import runs
from ova.report.figures import FIGURES
from ova.report.runs import labels

SCALE = 2  # pixels of a PNG per unit, for sharp print


def png(spec: str) -> bytes:
    """A picture with a white ground."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=SCALE))


def svg(spec: str) -> bytes:
    """Vector graphics with text as text."""
    import vl_convert

    return str(vl_convert.vegalite_to_svg(spec)).encode("utf-8")


def pdf(spec: str) -> bytes:
    """A page of the figure's size."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_pdf(spec))


FORMATS: dict[str, Callable[[str], bytes]] = {"png": png, "svg": svg, "pdf": pdf}


def write_figures(paths: Sequence[Path], folder: Path, kind: str = "png") -> list[Path]:
    """Write every figure that the runs allow as `<experiment>-<figure>.<kind>`."""
    render = pick(FORMATS, kind, "format")
    written = []
    for name, spec in specs(paths):
        path = folder / f"{name}.{kind}"
        with write_beside(path) as beside:
            beside.write_bytes(render(spec))
        written.append(path)
    return written


def specs(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """The file name and the chart of each figure that can be drawn."""
    for experiment, mine in runs.experiments(runs.read(paths)).items():
        for name, figure in FIGURES.items():
            rows = figure.rows(mine)
            if rows:
                chart = figure.spec(rows, labels(mine))
                chart["config"]["background"] = "white"
                yield f"{safe(experiment)}-{name}", json.dumps(chart)


def safe(name: str) -> str:
    """A name that is a file name everywhere.

    >>> safe("../a b")
    'a-b'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.") or "experiment"
