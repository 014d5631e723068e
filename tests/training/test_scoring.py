"""Scores of runs: fitted once, columns of what is predicted, chosen without the test's outside sets."""

import json
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.nn.formulations import FORMULATIONS
from ova.predictions import Predictions, read, write
from ova.scores import SCORES, Outputs, load
from ova.training import scoring
from ova.training.engine import Machine
from ova.training.predict import columns
from ova.training.stages import Place, carry_out, choose_score, load_task

RECIPE = replace(EXPERIMENTS["digits"].base("ova"), data="digits-8", epochs=2, shift="noise")


def run(out, machine=None, recipe=RECIPE, events=None):
    place, fabric = Place(out), Fabric(accelerator="cpu", devices=1)
    for _ in islice(carry_out(fabric, recipe, place, machine or Machine()), events):
        pass
    return place.folder(recipe)


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    return run(tmp_path_factory.mktemp("done"), Machine(keep_features=True))


def test_every_score_that_applies_is_measured_and_what_is_not_says_why(done):
    scores = load(done / "scores")
    assert set(scores.names) | set(scores.left_out) == set(SCORES)
    assert {"knn", "mds", "vim", "sirc", "energy_nearest"} <= set(scores.names)
    rows = read_lines(done / "measurements.jsonl")
    for dataset, metric in (("ood/8", "auroc"), ("ood/8", "fpr95"), ("test+ood/8", "aurc")):
        by = [r["score"] for r in rows if (r["dataset"], r["metric"]) == (dataset, metric)]
        assert by == list(scores.names)
    assert any(r["metric"] == "auroc" and r.get("score") == "max_p" and r["halves"] for r in rows)


def test_columns_are_the_scores_of_the_features_that_were_kept(done):
    scores = load(done / "scores")
    for name in ("test", "validation", "ood/8", "validation/9"):
        said = read(done / "predictions" / f"{name}.parquet")
        assert set(said.scores) == {n for n in scores.names if SCORES[n].column is None}
        again = scores.fitted["knn"](Outputs(features=said.features))
        assert said.scores["knn"] == pytest.approx(again, abs=1e-6)
    shifted = read(done / "predictions" / "shift" / "noise" / "5.parquet")
    assert not shifted.scores
    assert shifted.features is None


def test_a_head_that_is_affine_is_found_and_no_other_is_taken_for_one():
    f = np.random.default_rng(0).normal(size=(50, 6)).astype(np.float32)
    for name, form in FORMULATIONS.items():
        torch.manual_seed(0)
        head = form.head(6, 4)
        head.start(torch.from_numpy(f), torch.arange(50) % 4)
        found = scoring.affine(head.eval(), f)
        with torch.inference_mode():
            z = head(torch.from_numpy(f)).numpy()
        if found is not None:
            assert found(f) == pytest.approx(z, abs=1e-3), name
        if name in ("softmax", "ova", "t2fnorm", "logitnorm"):
            assert found is not None, name
        if name in ("dm", "ova-dm", "ova-ball", "ova-horizon"):
            assert found is None, name


def test_a_run_from_before_gets_scores_when_its_measurements_are_missing(done, tmp_path):
    place = run(tmp_path)
    whole = (place / "measurements.jsonl").read_bytes()
    assert whole == (done / "measurements.jsonl").read_bytes()  # kept features change no number
    for path in (place / "scores").iterdir():
        path.unlink()
    for path in (place / "predictions").rglob("*.parquet"):
        write(path, replace(read(path), scores={}))
    shifted = place / "predictions" / "shift" / "noise" / "5.parquet"
    before = shifted.stat().st_mtime_ns
    (place / "measurements.jsonl").unlink()
    assert run(tmp_path) == place
    assert (place / "measurements.jsonl").read_bytes() == whole
    assert shifted.stat().st_mtime_ns == before


def test_a_run_that_stops_while_it_scores_ends_with_the_same_bytes(done, tmp_path):
    names = ("scores/scores.json", "measurements.jsonl", "curves.json", "predictions/test.parquet")
    for events in (26, 27, 28, 30):  # before and after the scores are fitted, and while it predicts
        place = run(tmp_path / "cut", events=events)
    place = run(tmp_path / "cut")
    whole = run(tmp_path / "whole")
    cut = {name: (place / name).read_bytes() for name in names}
    assert cut == {name: (whole / name).read_bytes() for name in names}


def test_the_choice_is_written_down_and_looks_at_held_out_rows_alone(done):
    told = json.loads((done / "manifest.json").read_text())["score"]
    held = read(done / "predictions" / "validation.parquet")
    outside = read(done / "predictions" / "validation" / "9.parquet")
    assert told == choose_score(held, [outside])
    assert told["why"]
    assert set(told["areas"]) == set(load(done / "scores").names)


def test_training_rows_are_drawn_by_the_seed_and_are_of_a_class():
    train = load_task("digits-8", None).train
    one, again, other = (scoring.drawn(train, seed, 100) for seed in (0, 0, 1))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
    assert len(one.unique()) == 100
    assert (train.y[scoring.drawn(train, 0, 10**6)] >= 0).all()


def test_a_row_whose_features_overflow_is_as_far_outside_as_can_be(done):
    scores, width = load(done / "scores"), read(done / "predictions" / "test.parquet").features
    assert width is not None
    f, z = width[:3].copy(), np.zeros((3, 8), np.float32)
    f[1, 0] = np.inf
    log_p = np.full((3, 8), -1.0, np.float32)
    said = Predictions.from_logits(z, log_p, [0, 0, 0], normalised=False)
    for values in columns(scores, said, f, z, log_p).values():
        assert values[1] == -np.inf
        assert np.isfinite(values[[0, 2]]).all()
