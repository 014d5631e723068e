"""The script that prints every formulation by every score: its numbers are those of the runs."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import pytest

import made_runs
from narrowing import there
from ova.errors import BadInput
from ova.report import runs
from ova.report.intervals import estimate
from ova.report.scores import AUROC, measured, of_label
from ova.training.run_folder import Run

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    if not BENCHMARKS.exists():
        pytest.skip("there are no benchmarks here")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module("score_tables")
    finally:
        sys.path.remove(str(BENCHMARKS))


def printed(script, monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["score_tables.py", *map(str, words)])
    script.main()
    return capsys.readouterr().out


def test_every_score_of_every_formulation_is_printed_with_its_interval(
    script, tmp_path, monkeypatch, capsys
):
    made_runs.make(tmp_path, seeds=2, n=400, shift=False, scored=True)
    text = printed(script, monkeypatch, capsys, tmp_path)
    found = runs.read([tmp_path / "cifar10-desk"])
    for score in measured(found):
        (line, *_) = (line for line in text.splitlines() if line.split()[:1] == [score])
        for name in runs.labels(found):
            value = estimate(AUROC.rows(of_label(found, name), score))
            half = (there(value.high) - there(value.low)) / 2
            assert f"{value.mean:.4f} ± {half:.4f}" in line
    assert "ova-ball" not in runs.labels(found)
    assert "no run of ova-ball or of a rival" in text
    with pytest.raises(BadInput, match="no experiment called 'cifar'"):
        printed(script, monkeypatch, capsys, tmp_path, "--only", "cifar")


def row(value, score, metric="auroc"):
    return {"dataset": "ood/far", "metric": metric, "value": value, "n": 9, "score": score}


def test_the_default_is_compared_by_what_it_chose_with_the_best_that_a_rival_could_have(script):
    def made(label, seed, chosen, **values):
        rows = tuple(row(value, score) for score, value in values.items())
        told = {"score": {"chosen": chosen}}
        return Run("e", f"{label}-{seed}", label, seed, measurements=rows, manifest=told)

    several = [
        made(label, seed, "knn", max_p=p + seed / 1000, knn=k + seed / 1000)
        for seed in (0, 1, 2)
        for label, p, k in (("softmax", 0.8, 0.9), ("dm", 0.7, 0.95), ("ova-ball", 0.97, 0.85))
    ]
    said = script.aim(several, AUROC)
    assert said.startswith("ova-ball by knn 0.8510 ± ")
    assert "dm by knn 0.9510" in said
    assert "difference -0.1000" in said
    assert said.endswith("worse")
    alone = [run for run in several if run.seed == 0]
    assert "one seed says nothing" in script.aim(alone, AUROC)
