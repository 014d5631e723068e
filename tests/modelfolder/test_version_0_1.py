"""A model folder that version 0.1.0 wrote is loaded and answers as that version did."""

import csv
from pathlib import Path

import pytest

from ova.modelfolder.answer import answers
from ova.modelfolder.folder import load
from ova.modelfolder.write import write

OLD = Path(__file__).parent / "version_0_1"


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_it_answers_as_it_did(tmp_path: Path) -> None:
    write(tmp_path / "answers.csv", answers(load(OLD / "model"), [str(OLD / "rows.csv")]))
    new, old = rows(tmp_path / "answers.csv"), rows(OLD / "answers.csv")
    assert {"none of the above", "a", ""} < {row["label"] for row in old}
    for now, before in zip(new, old, strict=True):
        for key in ("input", "label", "problem"):
            assert now[key] == before[key]
        refused = now["label"] == "none of the above"  # that version had its best guess here
        assert before["runner_up"] == now["best_guess" if refused else "runner_up"]
        same = ["confidence"] if refused else ["confidence", "runner_up_confidence"]
        for key in same:  # another CPU may round otherwise
            assert bool(now[key]) == bool(before[key])
            assert float(now[key] or 0) == pytest.approx(float(before[key] or 0), rel=2e-5)
