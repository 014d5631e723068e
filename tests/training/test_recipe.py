"""A recipe is validated at the border, has a stable name, and survives the way through JSON."""

import json
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from ova.errors import BadInput
from ova.experiments import EXPERIMENTS
from ova.nn.formulations import PAPER
from ova.training.recipe import Recipe, from_json, load, load_all, override, wanted

BASE = Recipe(experiment="e", data="toy", model="mlp", formulation="ova", epochs=2, lr=0.1)


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=lambda e: e.name)
def test_every_experiment_expands_to_distinct_valid_recipes(experiment):
    runs = experiment.expand()
    assert len({run.id for run in runs}) == len(runs) == len(experiment.recipes) * experiment.seeds
    assert {run.experiment for run in runs} == {experiment.name}
    assert all(
        from_json(json.loads(json.dumps(asdict(run))), Path("r.json")) == run for run in runs
    )


def test_every_setting_says_what_it_takes():
    for spec in fields(Recipe):
        assert spec.metadata["meaning"], spec.name
        assert wanted(spec), spec.name


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("epochs=0", "whole number from 1"),
        ("epochs=many", "whole number from 1"),
        ("epochs=1.5", "whole number from 1"),
        ("lr=fast", "a number from 0"),
        ("lr=nan", "a number from 0"),
        ("lr=-1", "a number from 0"),
        ("momentum=2", "from 0 to 1"),
        ("formulation=sofmax", "did you mean 'softmax'"),
        ("data=cifar11", "did you mean 'cifar10'"),
        ("model=mpl", "did you mean 'mlp'"),
        ("schedule=cosin", "did you mean 'cosine'"),
        ("decay_at=10,x", "numbers"),
        ("epoch=3", "did you mean 'epochs'"),
        ("epochs", "key=value"),
        ("experiment=/x", "the name of a folder, not a path"),
        ("experiment=../../x", "the name of a folder, not a path"),
        ("experiment=..", "the name of a folder, not a path"),
        ("experiment=.", "the name of a folder, not a path"),
        ("experiment=", "the name of a folder, not a path"),
        ("experiment=a\0b", "the name of a folder, not a path"),
    ],
)
def test_a_wrong_setting_says_what_would_have_worked(setting, said):
    with pytest.raises(BadInput, match=said):
        override(BASE, [setting])


def test_settings_are_typed():
    changed = override(BASE, ["epochs=7", "lr=1", "decay_at=3,5.5", "schedule=steps"])
    assert (changed.epochs, changed.lr, changed.decay_at) == (7, 1.0, (3.0, 5.5))


def test_the_name_changes_with_every_field_and_only_then():
    assert BASE.id == replace(BASE).id
    others = [replace(BASE, seed=1), replace(BASE, lr=0.2), replace(BASE, experiment="f")]
    assert len({BASE.id, *(other.id for other in others)}) == 4


def test_a_default_that_is_spelled_out_does_not_rename_a_run():
    assert replace(BASE, momentum=0.9).id == BASE.id


@pytest.mark.parametrize("content", ["", "[1]", "{", '{"epochs": 1}', '{"learning": 3}', "\xff"])
def test_a_bad_recipe_file_is_named(tmp_path, content):
    path = tmp_path / "mine.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(BadInput, match=r"mine\.json"):
        load(path)


@pytest.mark.parametrize("name", ["cifar10", "cifar100", "clinc", "imagenet"])
def test_as_in_the_paper_has_the_starts_of_the_paper_too(name):
    formulations = [recipe.formulation for recipe in EXPERIMENTS[name].recipes]
    assert formulations == [*PAPER, "ova-zero", "ova-dm-zero"]


def test_a_file_of_lines_holds_many_recipes_alone_or_with_what_their_runs_left(tmp_path):
    one, two = BASE, replace(BASE, seed=1)
    path = tmp_path / "runs.jsonl"
    path.write_text(
        json.dumps(asdict(one)) + "\n" + json.dumps({"run": two.id, "recipe": asdict(two)}) + "\n"
    )
    assert load_all(path) == [one, two]
    pretty = tmp_path / "one.json"
    pretty.write_text(json.dumps(asdict(one), indent=2))
    assert load_all(pretty) == [one]


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("", "no recipe"),
        ('{"recipe": {"epochs": 1}}\n', "recipe 1"),
        ('{"recipe": [1]}\n', "recipe 1"),
        ("[1]\n", "line 1"),
        ("{\n", "line 1"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_file_of_recipes_is_named_with_its_line(tmp_path, content, where):
    path = tmp_path / "many.jsonl"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match=rf"many\.jsonl.*{where}"):
        load_all(path)


def test_only_borrows_from_the_first_recipe_for_an_unlisted_formulation():
    toy = EXPERIMENTS["toy"]
    (run,) = toy.expand(only=["ova-focal"], seeds=1)
    assert run.formulation == "ova-focal"
    assert run.epochs == toy.recipes[0].epochs
    with pytest.raises(BadInput, match="did you mean"):
        toy.expand(only=["ova-foca"])
