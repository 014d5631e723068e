"""`ova run` with recipes of several kinds at once."""

from dataclasses import replace

import pytest

from ova.cli import run
from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.training.engine import Machine
from ova.training.stages import Place

BASE = EXPERIMENTS["toy"].recipes[0]
MIXED = [replace(BASE, precision=each) for each in ("32-true", "bf16-mixed", "32-true")]


def test_one_process_runs_every_recipe_in_its_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def note(fabric, recipe, *_):
        seen.append((recipe.precision, fabric.strategy.precision.precision))
        return False

    monkeypatch.setattr(run, "run_one", note)
    monkeypatch.setattr(run, "summarise", lambda *_: None)
    assert run.run_all(MIXED, Place(), Machine(accelerator="cpu")) == 0
    assert seen == [(recipe.precision, recipe.precision) for recipe in MIXED]


def test_several_processes_take_one_precision() -> None:
    with pytest.raises(BadInput, match="one precision at a time"):
        run.run_all(MIXED, Place(), Machine(accelerator="cpu", devices=2))
