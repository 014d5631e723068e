"""Passes with dropout on: what is dropped follows from seed and row, and their mean p is the answer."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from torch import nn

from narrowing import there
from ova.data.task import InMemory
from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.nn.formulations import FORMULATIONS
from ova.predictions import read
from ova.training import predict as predicting
from ova.training.classifier import build
from ova.training.drawing import seed_of
from ova.training.dropping import draws, dropouts, dropping
from ova.training.engine import Machine
from ova.training.predict import Predictor, predict
from ova.training.recipe import Recipe
from ova.training.run_folder import predictions_path
from ova.training.stages import Place, carry_out, load_task

RECIPE = replace(EXPERIMENTS["digits"].base("ova"), epochs=1, steps=5, shift="none")
MASK = 2**64 - 1


def slow_draw(seed: int, row: int, place: int) -> float:
    """The same with Python's whole numbers: SplitMix64 of a key, its counter from 1."""

    def mixed(z: int) -> int:
        z &= MASK
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
        return z ^ (z >> 31)

    bits = mixed(mixed(mixed(seed) + row) + (place + 1) * 0x9E3779B97F4A7C15)
    return (bits % 2**24) / 2**24


def test_draws_are_those_of_the_generator_in_any_batch():
    rows = torch.tensor([5, 0, 2**40])
    u = draws(rows, 50, seed=seed_of(1, 2))
    for i, row in enumerate(rows.tolist()):
        assert u[i].tolist() == [slow_draw(seed_of(1, 2), row, k) for k in range(50)]
    assert torch.equal(draws(rows.flip(0)[:1], 7, seed_of(1, 2))[0], u[2, :7])


def test_draws_are_uniform_and_rows_do_not_follow_each_other():
    u = draws(torch.arange(400), 500, seed=3).double()
    assert abs(u.mean() - 0.5) < 5 / (12 * u.numel()) ** 0.5
    assert abs((u < 0.1).double().mean() - 0.1) < 5 * (0.09 / u.numel()) ** 0.5
    r = torch.corrcoef(u) - torch.eye(len(u))
    assert r.abs().max() < 6 / 500**0.5


def test_it_drops_as_dropout_does_and_leaves_the_rest_as_it_predicts():
    net = nn.Sequential(nn.BatchNorm1d(1000), nn.Dropout(0.25)).eval()
    kept = {name: t.clone() for name, t in net.state_dict().items()}
    x = torch.ones(8, 1000)
    with dropping(net, torch.arange(8), seed=0):
        y = net(x)
    assert y.unique().tolist() == pytest.approx([0.0, 4 / 3], abs=1e-4)
    assert abs((y == 0).double().mean() - 0.25) < 0.025
    assert all(torch.equal(t, kept[name]) for name, t in net.state_dict().items())
    assert torch.allclose(net(x), x, atol=1e-4)  # afterwards nothing is dropped


@pytest.fixture(scope="module")
def predictor():
    recipe = replace(RECIPE, dropout=0.3, model="mlp", data="toy")
    task = load_task("toy", None)
    fabric, net = Fabric(accelerator="cpu", devices=1), build(recipe, task).eval()
    return Predictor(fabric, net, task, FORMULATIONS["ova"], 3, 4)


def test_the_answer_is_the_mean_of_p_over_the_passes(predictor):
    examples = predictor.task.validation
    said = predict(predictor, examples, limit=10, matrix=True)
    ((x, _),) = examples.batches([torch.arange(10)])
    parts = []
    for sample in range(4):
        with dropping(predictor.net, torch.arange(10), seed_of(3, sample)), torch.no_grad():
            z = predictor.net(predictor.task.prepare(x)).double()
        parts.append(predictor.form.probs(z).numpy())
    mean = np.mean(parts, 0)
    assert np.array_equal(said.confidence, mean.max(1))
    assert np.array_equal(there(said.probs), mean.astype(np.float32))
    assert len(np.unique(there(said.probs))) > 10
    assert not np.allclose(mean.sum(1), 1)  # one-vs-all stays unnormalised
    once = predict(replace(predictor, samples=0), examples, limit=10)
    assert not np.allclose(once.confidence, said.confidence, atol=1e-3)


def test_batches_and_processes_change_no_number(predictor, monkeypatch):
    examples = predictor.task.validation
    whole = predict(predictor, examples, matrix=True)
    monkeypatch.setattr(predicting, "BATCH", 7)
    parts = predict(predictor, examples, matrix=True)
    # What is dropped is the same to the last bit; a product of other shape may round otherwise.
    assert np.allclose(there(whole.probs), there(parts.probs), rtol=1e-5, atol=1e-7)
    other = predict(replace(predictor, seed=4), examples, matrix=True)
    assert not np.allclose(there(whole.probs), there(other.probs), atol=1e-3)
    monkeypatch.setattr(
        predicting, "share", lambda _, batches: [b[1::2] for b in batches if len(b) > 1]
    )
    mine = predict(predictor, examples, matrix=True)
    at = np.searchsorted(whole.id, mine.id)
    assert len(mine) < len(whole)
    assert np.allclose(there(whole.probs)[at], there(mine.probs), rtol=1e-5, atol=1e-7)


def test_a_recipe_asks_for_it_and_old_ones_keep_their_names(tmp_path):
    recipe = replace(RECIPE, dropout=0.2, samples=3)
    assert replace(recipe, samples=0).digest == replace(RECIPE, dropout=0.2).digest
    assert recipe.id != replace(recipe, samples=0).id
    for _ in carry_out(Fabric(accelerator="cpu", devices=1), recipe, Place(tmp_path), Machine()):
        pass
    said = read(predictions_path(Place(tmp_path).folder(recipe), "ood/8"))
    assert said.max_logit is None
    assert said.probs is not None


def test_a_network_without_dropout_is_refused_before_any_training(tmp_path):
    recipe: Recipe = replace(RECIPE, samples=3)
    with pytest.raises(BadInput, match=r"has no dropout.*dropout=0\.1"):
        for _ in carry_out(
            Fabric(accelerator="cpu", devices=1), recipe, Place(tmp_path), Machine()
        ):
            pass
    assert not list(tmp_path.rglob("log.jsonl"))
    with pytest.raises(BadInput):
        dropouts(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.0)))


def test_examples_of_a_set_are_drawn_by_their_own_number(predictor):
    x = predictor.task.validation
    ((one, y),) = x.batches([torch.tensor([4])])
    again = InMemory(one.repeat(3, *[1] * (one.dim() - 1)), y.repeat(3))
    p = there(predict(predictor, again, matrix=True).probs)
    assert not np.allclose(p[0], p[1], atol=1e-4)
