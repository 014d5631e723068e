"""A bank of training features: all of them, or a fair draw where they would not fit into memory."""

from typing import Any

import numpy as np

from ova.predictions.columns import Array
from ova.scores.outputs import Outputs

CELLS = 1 << 27  # numbers that a bank holds at most: half a gibibyte, a million features of 128
SAMPLE = 1 << 22  # numbers of the part that percentiles and the like are taken from


class Bank:
    """Features at length one, with their lengths, energies and the numbers of their rows.

    Every row draws a number by a fixed seed and the smallest stay: which these are depends on the
    order of the rows alone, not on the blocks in which they come.
    """

    def __init__(self, cells: int = CELLS, rows: int | None = None) -> None:
        self.cells, self.rows, self.seen = cells, rows, 0
        self.draw = np.random.default_rng(0)
        self.parts: list[dict[str, Array]] = []

    def add(self, rows: Outputs) -> None:
        """Take in a block."""
        energy = None if rows.said is None else rows.said.energy
        part: dict[str, Any] = {
            "ticket": self.draw.random(len(rows)),
            "row": np.arange(self.seen, self.seen + len(rows)),
            "length": rows.length,
            "unit": rows.unit,
        }
        if energy is not None:
            part["energy"] = energy
        self.seen += len(rows)
        self.parts.append(part)
        if sum(len(p["row"]) for p in self.parts) > 1.25 * self.most:
            self._settle()

    @property
    def most(self) -> int:
        """Rows that stay."""
        most = max(1, self.cells // int(self.parts[0]["unit"].shape[1]))
        return most if self.rows is None else min(self.rows, most)

    def _settle(self) -> None:
        whole = {name: np.concatenate([p[name] for p in self.parts]) for name in self.parts[0]}
        if len(whole["row"]) > self.most:
            stay = np.sort(np.argpartition(whole["ticket"], self.most - 1)[: self.most])
            whole = {name: column[stay] for name, column in whole.items()}
        self.parts = [whole]

    def __getitem__(self, name: str) -> Array:
        if len(self.parts) > 1 or len(self.parts[0]["row"]) > self.most:
            self._settle()
        return self.parts[0][name]

    def __contains__(self, name: str) -> bool:
        return name in self.parts[0]

    def sample(self) -> Array:
        """Features of some rows, evenly among those that are kept, as they were."""
        unit = self["unit"]
        step = -(-len(unit) * unit.shape[1] // SAMPLE)
        return np.asarray(unit[::step] * self["length"][::step, None], np.float32)
