"""Where the rows of a set come from: the user's file, the number of each row in it, and what stands there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CUT = 200  # characters of an input by which a row is called


@dataclass(frozen=True)
class Origin:
    """The rows of one set, in its order."""

    path: Path
    rows: Sequence[int]  # their numbers in the file, from 0
    cells: Sequence[Any]  # of the whole file: names of images, or texts; of tables nothing
    labels: Sequence[str | None]  # of the whole file, as they were given; () where there are none
    images: bool = False  # then the path is a folder, and the cells are files

    def place(self, row: int) -> str:
        """Where a row stands: an image in the folder, a row of a file by its number as people count."""
        if self.images:
            name = Path(str(self.cells[self.rows[row]]))
            return str(name.relative_to(self.path) if name.is_relative_to(self.path) else name)
        return f"row {self.rows[row] + 1} of {self.path.name}"

    def cell(self, row: int) -> str:
        """The beginning of a text, "" where the input is none."""
        return beginning(self.cells[self.rows[row]]) if self.cells and not self.images else ""

    def label(self, row: int) -> str:
        """The label that a row was given."""
        return str(self.labels[self.rows[row]]) if self.labels else ""


Origins = Mapping[str, Origin]  # by the name of the set


def beginning(cell: object) -> str:
    """A cell on one line, cut where it is long.

    >>> beginning("felix the  cat"), len(beginning(300 * "a"))
    ('felix the cat', 203)
    """
    text = " ".join(str(cell).split())
    return f"{text[:CUT]}{'...' * (len(text) > CUT)}"
