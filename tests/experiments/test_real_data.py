"""The desk experiments on real data: the whole protocol in small, and a step of the real models."""

from dataclasses import replace

import pytest
from lightning_fabric import Fabric

from ova.corruptions import CORRUPTIONS, SUBSETS
from ova.data.task import InMemory
from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.predictions import read
from ova.training.engine import Machine
from ova.training.loop import fit
from ova.training.recipe import Recipe, load
from ova.training.stages import Place, carry_out, load_task

SEVERITIES = range(1, 6)
CIFAR = {"test": 10_000, "validation": 5_000, "ood/svhn": 26_032}
TEXT = {"test": 4_500, "validation": 3_000, "ood/oos": 1_000}
SHIFTED = 16


def shifts(types, count=SHIFTED):
    return {f"shift/{name}/{s}": count for name in types for s in SEVERITIES}


def first(examples, count):
    lengths = None if examples.lengths is None else examples.lengths[:count]
    return InMemory(examples.x[:count], examples.y[:count], lengths)


# Every set of the protocol, with the number of its predictions.
PROTOCOL = {
    "cifar10-desk": {**CIFAR, "ood/cifar100": 10_000, **shifts(CORRUPTIONS)},
    "cifar100-desk": {**CIFAR, "ood/cifar10": 10_000, **shifts(SUBSETS["paper-17"])},
    "clinc-desk": {**TEXT, **shifts(["replace"])},
}
CHOOSING = {"clinc-desk": {"validation/oos": 100}}  # predicted, and never measured


def run(recipe, data_dir, out):
    place = Place(out, data_dir)
    for _ in carry_out(Fabric(accelerator="cpu", devices=1), recipe, place, Machine()):
        pass
    return place.folder(recipe)


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOL)
def test_the_whole_protocol_runs(name, data_dir, tmp_path):
    recipe = replace(EXPERIMENTS[name].base("ova-dm"), epochs=1, steps=2, shift_examples=SHIFTED)
    if name != "clinc-desk":  # the real networks take minutes for fifty thousand images
        recipe = replace(recipe, model="wrn-10-1")
    folder = run(recipe, data_dir, tmp_path)
    rows = read_lines(folder / "measurements.jsonl")
    predicted = PROTOCOL[name] | CHOOSING.get(name, {})
    for dataset, count in predicted.items():
        assert len(read(folder / "predictions" / f"{dataset}.parquet")) == count, dataset
        values = [r for r in rows if r["dataset"] == dataset and r["value"] is not None]
        assert bool(values) == (dataset in PROTOCOL[name]), dataset
    stored = {str(p.relative_to(folder / "predictions")) for p in folder.rglob("*.parquet")}
    assert stored == {f"{dataset}.parquet" for dataset in predicted}
    assert load(folder / "recipe.json") == recipe


@pytest.mark.slow
@pytest.mark.parametrize("name", PROTOCOL)
@pytest.mark.parametrize("formulation", ["softmax", "ova-dm"])
def test_the_real_network_learns_from_its_first_steps(name, formulation, data_dir, tmp_path):
    base = EXPERIMENTS[name].base(formulation)
    recipe = replace(base, epochs=1, steps=6, batch_size=32, warmup=0, clip=1.0)
    task = load_task(recipe.data, data_dir)
    few = replace(task, train=first(task.train, 32), validation=first(task.validation, 32))
    fabric = Fabric(accelerator="cpu", devices=1)
    happening = fit(fabric, few, replace(recipe, epochs=6), tmp_path, Machine())
    losses = [progress.row["loss"] for progress in happening if progress.row]
    assert len(losses) == 6
    assert losses[-1] < losses[0]


def test_the_paper_and_the_desk_differ_only_where_the_desk_must():
    kept = {"formulation", "seed", "precision", "keep", "ema"}
    for name in PROTOCOL:
        desk, paper = (EXPERIMENTS[n].recipes[0] for n in (name, name.removesuffix("-desk")))
        assert {f: getattr(desk, f) for f in kept} == {f: getattr(paper, f) for f in kept}
        assert desk.data.startswith(paper.data)
        assert isinstance(desk, Recipe)
        assert desk.epochs < paper.epochs
