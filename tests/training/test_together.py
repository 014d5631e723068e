"""A recipe with members trains several networks and answers with their mean p, as runs averaged do."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from lightning_fabric import Fabric

from narrowing import there
from ova.experiments import EXPERIMENTS
from ova.predictions import read
from ova.report import runs
from ova.training.engine import Machine
from ova.training.ensemble import ensemble
from ova.training.run_folder import predictions_path
from ova.training.stages import Place, carry_out
from ova.training.together import members_of

BASE = replace(EXPERIMENTS["toy"].recipes[0], epochs=2, steps=60, members=3)


def run(recipe, place, events=None):
    happened = carry_out(Fabric(accelerator="cpu", devices=1), recipe, place, Machine())
    for _ in islice(happened, events):
        pass
    happened.close()
    return place.folder(recipe)


@pytest.mark.slow
@pytest.mark.parametrize("formulation", ["dm", "ova-dm"])
def test_it_says_what_the_ensemble_of_its_members_says(formulation, tmp_path):
    recipe, place = replace(BASE, formulation=formulation), Place(tmp_path)
    folder, out = run(recipe, place), tmp_path / "toy" / "together"
    for _ in ensemble([run(each, place) for each in members_of(recipe)], out):
        pass
    for name in ("test", "validation", "ood/ring"):
        one, other = (read(predictions_path(at, name)) for at in (folder, out))
        assert np.allclose(there(one.probs), there(other.probs), rtol=1e-4, atol=1e-6)
        assert np.allclose(one.confidence, other.confidence, rtol=1e-4, atol=1e-6)
        assert one.normalised or np.allclose(
            there(one.log_none), there(other.log_none), rtol=1e-3, atol=1e-4
        )
    labels = runs.labels(runs.read([tmp_path]))
    assert f"{formulation} x 3" in labels
    assert formulation in labels


@pytest.mark.slow
@pytest.mark.parametrize("events", [30, 75, 130, 190])
def test_a_killed_training_ends_with_the_same_weights(events, tmp_path):
    whole, broken = Place(tmp_path / "whole"), Place(tmp_path / "broken")
    run(BASE, broken, events)
    names = ("model.safetensors", "measurements.jsonl")
    for name in names:
        assert (run(BASE, broken) / name).read_bytes() == (run(BASE, whole) / name).read_bytes()


def test_one_member_is_the_recipe_of_before():
    assert (
        replace(BASE, members=1).digest
        == replace(EXPERIMENTS["toy"].recipes[0], epochs=2, steps=60).digest
    )
    assert BASE.id != replace(BASE, members=2).id
    assert len({each.seed for each in members_of(BASE)} - {BASE.seed}) == 3
