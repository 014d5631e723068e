"""Rare classes: weights that are tried where classes are uneven, and kept where they help."""

from pathlib import Path

import pytest
import torch
from torch import tensor
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.files import read_object
from ova.predictions import read
from ova.training.balance import Held, better, class_weights, uneven
from ova.userdata.gather import gather
from ova.userdata.request import Request


def test_a_row_counts_more_the_rarer_its_class_and_one_in_the_mean() -> None:
    y = torch.cat([torch.full((n,), k) for k, n in enumerate((900, 90, 9, 1))] + [tensor([-1] * 5)])
    weights = class_weights(y, 5)
    assert (weights[:4].diff() > 0).all()
    assert weights[1] / weights[0] == pytest.approx(10**0.5)
    assert weights[y[y >= 0]].mean() == pytest.approx(1)
    assert weights.isfinite().all()  # also of a class without a row


def test_weights_are_tried_where_a_class_is_twenty_times_rarer() -> None:
    assert uneven(tensor([0] * 20 + [1]))
    assert not uneven(tensor([0] * 19 + [1] + [-1] * 500))
    assert not uneven(tensor([0] * 19 + [2]))
    assert not uneven(tensor([-1]))


def test_weights_are_kept_where_they_help_rare_classes_and_cost_little() -> None:
    y = tensor([0] * 98 + [1, 1, -1])
    plain = Held.of(torch.zeros(101, dtype=torch.long), y)
    assert plain == Held(0.98, 0.5)
    helped = Held.of(torch.where(y == 1, 1, 0), y)
    assert helped == Held(1, 1)
    assert better(plain, helped)
    assert not better(plain, plain)
    assert not better(plain, Held(0.9, 1))
    assert better(plain, Held(0.975, 1))


def test_unasked_only_uneven_data_are_tried(tmp_path: Path) -> None:
    rare, even = made_data.rare(tmp_path / "rare.csv"), made_data.table(tmp_path / "even.csv")
    assert gather(Request(data=even)).recipe.balance == "off"
    assert gather(Request(data=even, balance=True)).recipe.balance == "on"
    assert gather(Request(data=rare)).recipe.balance == "auto"
    assert gather(Request(data=rare, balance=False)).recipe.balance == "off"


@pytest.mark.slow
def test_rare_classes_are_told_apart_and_all_is_said_by_class(tmp_path: Path) -> None:
    data = made_data.rare(tmp_path / "rare.csv")
    recall, said = {}, {}
    for name, words in {"plain": ["--no-balance"], "unasked": []}.items():
        out = tmp_path / name
        quick = ["--set", "epochs=15", "--score", "max_p", "-o", str(out)]
        told = CliRunner().invoke(app, ["train", str(data), *words, *quick])
        assert told.exit_code == 0, told.output
        p = read(out / "run/predictions/test.parquet")
        hits = [p.correct[p.target == k].mean() for k in range(7) if (p.target == k).any()]
        recall[name], said[name] = sum(hits) / len(hits), told.output
        assert "by class, on the test rows:" in told.output
        assert "mean of the classes" in told.output
        assert "mean of the classes" in (out / "report.html").read_text()
        assert not (out / "run/balance").exists()
    assert recall["unasked"] > recall["plain"] + 0.1
    assert "class weights were tried and kept" in said["unasked"]
    assert "class weights" not in said["plain"]
    assert "no held-out row is ever answered with 'k" in said["plain"]
    decision = read_object(tmp_path / "unasked/run/balance.json")
    assert decision["balance"] == "on"
