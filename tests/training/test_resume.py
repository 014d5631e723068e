"""Training that was killed in any epoch ends with the bytes of an undisturbed one: every model family,
every update rule, averaged weights and the best epoch, in memory that is laid out in any order."""

import shutil
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric
from lightning_fabric.plugins import MixedPrecision
from safetensors.torch import save_file
from torch import nn

from made_encoders import ENCODERS
from made_models import shape_of
from ova.data.augmentation import CropFlip
from ova.data.task import InMemory, Task
from ova.errors import BadInput
from ova.files import read_lines
from ova.models import MODELS
from ova.training.checkpoint import facts as facts_of
from ova.training.checkpoint import load, optimiser_tensors, restore_optimiser, save
from ova.training.engine import Machine
from ova.training.loop import fit
from ova.training.optimisation import OPTIMISERS
from ova.training.recipe import Recipe
from ova.training.run_folder import LOG, MODEL

EPOCHS, ROWS, CLASSES = 3, 12, 3
BASE = Recipe(
    experiment="toy",
    data="toy",
    model="mlp",
    formulation="ova-dm",
    epochs=EPOCHS,
    batch_size=6,
    lr=1e-2,
    head_lr=2.0,
    weight_decay=1e-3,
    dropout=0.1,
    clip=1.0,
    schedule="cosine",
)
SMALL = [name for name in MODELS if name not in ("wrn-28-10", "resnet50")]  # wrn-16-2 stays


def task_of(shape: tuple[int, ...]) -> Task:
    """A few random examples of a shape, with noise for an augmentation."""
    draw = torch.Generator().manual_seed(0)
    y = torch.arange(ROWS) % CLASSES
    if len(shape) == 2:
        x = torch.randint(1, shape[0], (ROWS, 7), generator=draw)
        examples = InMemory(x, y, torch.arange(ROWS) % 5 + 3)
        return Task(("a", "b", "c"), shape, examples, examples, {}, prepare=lambda x: x)
    examples = InMemory(torch.randn((ROWS, *shape), generator=draw), y)
    return Task(
        ("a", "b", "c"),
        shape,
        examples,
        examples,
        {},
        prepare=lambda x: x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x,
        augment=lambda x, noise: x + 0.1 * torch.randn(x.shape, generator=noise),
    )


def train(
    recipe: Recipe, task: Task, folder: Path, cuts: Path | None = None, fabric: Fabric | None = None
) -> Path:
    """Train in a folder; with `cuts`, copy what a kill in each epoch would leave of the folder."""
    folder.mkdir(exist_ok=True)
    fabric = fabric or Fabric(accelerator="cpu", devices=1)
    for progress in fit(fabric, task, recipe, folder, Machine()):
        if cuts and not progress.row and not (cut := cuts / f"{progress.epoch}").exists():
            shutil.copytree(folder, cut)
    return folder


def outcome(folder: Path) -> tuple[bytes, list[dict[str, object]]]:
    """The trained weights and the log without its times."""
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in read_lines(folder / LOG)]
    return (folder / MODEL).read_bytes(), rows


def check(recipe: Recipe, task: Task, at: Path) -> None:
    """Kill the training of a recipe in every epoch, go on, and compare."""
    (cuts := at / "cuts").mkdir()
    whole = outcome(train(recipe, task, at / "whole", cuts))
    assert sorted(cut.name for cut in cuts.iterdir()) == [str(n + 1) for n in range(EPOCHS)]
    for cut in cuts.iterdir():
        assert outcome(train(recipe, task, cut)) == whole, f"killed in epoch {cut.name}"


def often(model: str, rule: str, ema: float) -> bool:
    """Whether `make check` looks too: at the networks that take seconds, with one rule only."""
    return not model.startswith(("bert", "wrn", "resnet", "quick")) or (rule, ema) == ("adamw", 0.9)


@pytest.mark.parametrize(
    ("model", "rule", "ema"),
    [
        pytest.param(*each, marks=() if often(*each) else pytest.mark.slow)
        for each in product(SMALL, OPTIMISERS, (0.0, 0.9))
    ],
)
def test_every_model_with_every_optimiser_goes_on_exactly(model, rule, ema, tmp_path):
    recipe = replace(BASE, model=model, optimiser=rule, ema=ema)
    check(recipe, task_of(shape_of(model)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("rule", OPTIMISERS)
def test_a_network_of_transformers_too(rule, tmp_path):
    recipe = replace(BASE, model="resnet50", optimiser=rule, ema=0.9)
    check(recipe, task_of(shape_of("resnet50")), tmp_path)


@pytest.mark.parametrize(
    ("encoder", "how", "rule"),
    [
        pytest.param(*each, marks=() if each[2] == "adamw" else pytest.mark.slow)
        for each in product(ENCODERS, ["folder", "frozen"], OPTIMISERS)
    ],
)
def test_encoders_of_the_user_too(encoder, how, rule, tmp_path):
    torch.manual_seed(0)
    ENCODERS[encoder](tmp_path / encoder)
    shape = {"bert": (20, 9), "vit": (3, 16, 16), "resnet": (3, 32, 32)}[encoder]
    recipe = replace(BASE, model=f"{how}:{tmp_path / encoder}", optimiser=rule, ema=0.9)
    check(recipe, task_of(shape), tmp_path)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("keep", ["last", "best"])
def test_the_best_epoch_and_training_without_momentum_too(keep, momentum, tmp_path):
    recipe = replace(BASE, model="convnet-small", keep=keep, momentum=momentum, patience=2)
    check(recipe, task_of((1, 8, 8)), tmp_path)


def test_flips_in_turns_growing_images_and_rates_of_their_own_too(tmp_path):
    task = replace(task_of((3, 16, 16)), augment=CropFlip())
    recipe = replace(
        BASE, model="quick", optimiser="sgd", bias_lr=64.0, norm_momentum=0.3, lr_start=0.2, lr_end=0.07,
        schedule="linear", warmup=1, crop=2, border="reflect", flips="alternate", sides=(10, 12, 16),
    )  # fmt: skip
    check(recipe, task, tmp_path)


def test_weights_and_facts_have_one_way_to_be_written(tmp_path):
    facts = {name: name for name in ["recipe", "epoch", "step", "best", "precision"]}
    orders = (facts, dict(reversed(facts.items())))
    for number, each in enumerate(orders * 8):
        save(tmp_path / str(number), {"w": torch.ones(3), "v": torch.zeros(2)}, each)
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert load(tmp_path / "0")[1] == facts_of(tmp_path / "0") == facts


def test_facts_of_older_files_are_read(tmp_path):
    save_file({"w": torch.ones(3)}, tmp_path / "old", metadata={"recipe": "a", "epoch": "3"})
    assert load(tmp_path / "old")[1] == facts_of(tmp_path / "old") == {"recipe": "a", "epoch": "3"}


@pytest.mark.parametrize("told", ["", "[]", '{"epoch": 3}', "{"])
def test_facts_that_are_none_are_refused(told, tmp_path):
    save_file({"w": torch.ones(3)}, tmp_path / "bad", metadata={"facts": told})
    for read in (load, facts_of):
        with pytest.raises(BadInput, match="bad is damaged"):
            read(tmp_path / "bad")


def test_the_scale_of_half_precision_too(tmp_path):
    """The gradient's scale is state as well: it starts far too large and is halved step by step."""
    recipe, task = replace(BASE, model="convnet-small", clip=0.0), task_of((1, 8, 8))

    def half() -> Fabric:
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**40)
        plugin = MixedPrecision("16-mixed", "cpu", scaler)
        return Fabric(accelerator="cpu", devices=1, plugins=[plugin])

    (cuts := tmp_path / "cuts").mkdir()
    whole = outcome(train(recipe, task, tmp_path / "whole", cuts, half()))
    for cut in cuts.iterdir():
        assert outcome(train(recipe, task, cut, fabric=half())) == whole


@pytest.mark.parametrize("rule", OPTIMISERS)
def test_what_is_put_back_lies_in_memory_as_the_weights_do(rule):
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 5, 1))
    net = net.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    before, after = (OPTIMISERS[rule]([{"params": list(net.parameters())}], BASE) for _ in "ab")
    net(torch.randn(2, 3, 8, 8)).square().sum().backward()
    before.step()
    stored = {name: t.clone().contiguous() for name, t in optimiser_tensors(before).items()}
    restore_optimiser(after, stored)
    for p in net.parameters():
        for key, value in after.state[p].items():
            assert torch.equal(value, before.state[p][key])
            assert value.ndim == 0 or value.stride() == p.stride(), key
