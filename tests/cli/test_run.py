"""`ova run` with recipes of several kinds at once."""

import json
from dataclasses import replace

import pytest
from rich.console import Console

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


def test_a_run_whose_measurements_were_cut_is_summed_up_as_far_as_it_goes(tmp_path):
    rows = ["ece", "auroc", "accuracy"]
    cut = [{"dataset": "test", "metric": m, "value": None, "score": "max_p"} for m in rows[:2]]
    (tmp_path / "measurements.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in cut))
    run.summarise([tmp_path], console := Console(record=True))
    assert "OOD AUROC" in console.export_text()
