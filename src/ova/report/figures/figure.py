"""A figure of the report as a value: what it answers, the rows it needs and how it is drawn."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from altair.utils.schemapi import debug_mode

from ova.files import Row
from ova.report import theme
from ova.training.run_folder import Run


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure: runs -> rows -> chart; the caption says how to read it."""

    title: str
    caption: str
    needs: str  # what to measure so that the figure can be drawn
    section: str  # of `ova.report.sections.SECTIONS`
    rows: Callable[[Sequence[Run]], list[Row]]
    draw: Callable[[Sequence[Row], Sequence[str]], theme.Chart]
    still: bool = False  # its scale is another than the slider's

    def spec(self, rows: Sequence[Row], labels: Sequence[str]) -> dict[str, Any]:
        """The chart as Vega-Lite, quickly: unchecked (the tests check it) and without copying rows."""
        with debug_mode(False):
            chart = self.draw(rows, labels)
            chart.data = theme.LATER
            found: dict[str, Any] = chart.to_dict(validate=False)
        name = f"rows-{hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]}"
        found["data"] = {"name": name}
        found["datasets"] = found.get("datasets", {}) | {name: list(rows)}
        return found
