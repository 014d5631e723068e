"""Any classifier takes any of our last layers, keeps the rest, and trains where its users train."""

import copy
import pickle
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, assert_type

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import ova
from made_transformers import IMAGES, TOKENS, TRANSFORMERS, K, bert, resnet, vit
from ova.errors import BadInput
from ova.models import MODELS
from ova.nn.convert import convert, find
from ova.nn.formulations import FORMULATIONS
from ova.nn.heads import Affine
from ova.nn.modules import IGNORED, Head, Loss

PAPER = ("softmax", "dm", "ova", "ova-dm", "ova-ball")


Y = torch.tensor([0, 1, 2, 3, 4, 0])


@pytest.mark.parametrize("formulation", PAPER)
@pytest.mark.parametrize(("make", "x", "layer"), TRANSFORMERS.values(), ids=TRANSFORMERS)
def test_transformers_keep_all_but_the_last_layer(
    make: Any, x: dict[str, Tensor], layer: str, formulation: str
) -> None:
    torch.manual_seed(0)
    model = make()
    before = {n: p.clone() for n, p in model.state_dict().items() if not n.startswith(layer + ".")}
    converted, loss = ova.convert(model, formulation)
    assert converted is model
    assert isinstance(model.get_submodule(layer), Head)
    after = model.state_dict()
    assert all(torch.equal(after[n], p) for n, p in before.items())
    assert {n for n in after if not n.startswith(layer + ".")} == set(before)
    outputs = model(**x)
    value = loss(outputs, Y)
    value.backward()
    assert torch.isfinite(value)
    # Every weight learns, from the embedding to the new layer.
    assert all(p.grad is not None for p in model.get_submodule(layer).parameters())
    expected = FORMULATIONS[formulation].loss(outputs.logits, Y).mean()
    assert torch.allclose(value, expected)
    p = loss.probs(outputs)
    assert p.shape == (6, K)
    assert torch.allclose(loss.log_probs(outputs).exp(), p, atol=1e-6)


@pytest.mark.parametrize("make", [resnet, bert, vit])
def test_classes_may_change(make: Any) -> None:
    model, _ = convert(make(), "ova-dm", classes=3)
    x = TOKENS if make is bert else IMAGES
    assert model(**x).logits.shape == (6, 3)
    assert model.config.num_labels == 3


LARGE = ("wrn-28-10", "resnet50")  # made of the same blocks as the small ones


@pytest.mark.parametrize("name", [name for name in MODELS if name not in LARGE])
def test_our_own_backbones(name: str) -> None:
    tokens = "bert" in name or "text" in name
    shape = (50, 12) if tokens else (2,) if name.startswith("mlp") else (3, 32, 32)
    backbone = MODELS[name](shape, 0.0)
    model: Any = nn.Sequential(backbone, nn.Linear(backbone.features, K))
    model, loss = convert(model, "ova-dm")
    x = torch.randint(1, 50, (4, 12)) if tokens else torch.randn(4, *shape)
    assert isinstance(model[1], Head)
    loss(model(x), Y[:4]).backward()


def test_a_plain_loop_learns() -> None:
    torch.manual_seed(0)
    x = torch.randn(300, 2) + 4 * torch.eye(3)[torch.arange(300) % 3] @ torch.randn(3, 2)
    y = torch.arange(300) % 3
    net: nn.Module = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3))
    net, loss = convert(net, "ova-dm")
    optimiser = torch.optim.Adam(net.parameters(), 0.02)
    first = loss(net(x), y).item()
    for _ in range(150):
        optimiser.zero_grad()
        value = loss(net(x), y)
        value.backward()
        optimiser.step()
    assert value.item() < first / 2


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")
def test_lightning(tmp_path: Path) -> None:
    import lightning as L

    class Module(L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, K))
            self.net, self.loss = convert(net, "ova-dm")

        def training_step(self, batch: list[Tensor], _: int) -> Tensor:
            x, y = batch
            value: Tensor = self.loss(self.net(x), y)
            return value

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), 0.05)

    torch.manual_seed(0)
    y = torch.arange(64) % K
    x = torch.randn(64, 4) * 0.1 + torch.randn(K, 4)[y]
    module = Module()
    module.net(x)
    before = module.loss(module.net(x), y).item()
    trainer = L.Trainer(
        max_epochs=20, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False, default_root_dir=tmp_path,
    )  # fmt: skip
    trainer.fit(module, DataLoader(TensorDataset(x, y), 16))
    assert module.loss(module.net(x), y).item() < before


def test_ignored_and_outside_labels() -> None:
    _, loss = convert(nn.Sequential(nn.Linear(2, 3)), "ova")
    z = torch.randn(2, 4, 3)
    y = torch.tensor([[0, 1, IGNORED, 2], [-1, IGNORED, 1, 0]])
    kept = y.flatten() != IGNORED
    expected = Loss("ova")(z.reshape(-1, 3)[kept], y.flatten()[kept])
    assert torch.allclose(loss(z, y), expected)


def test_precision_device_and_mode_stay() -> None:
    net = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 3)).double().eval()
    convert(net, "ova-dm")
    assert net.get_parameter("1.layer.weight").dtype == torch.float64
    assert not net[1].training


@pytest.mark.parametrize("remake", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_converted_models_can_be_copied(remake: Any) -> None:
    model, _ = convert(vit(), "ova")
    model.eval()
    assert torch.equal(remake(model)(**IMAGES, labels=Y).loss, model(**IMAGES, labels=Y).loss)


class TwoHeads(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body, self.one, self.two = nn.Linear(2, 8), nn.Linear(8, 3), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.one(self.body(x))
        return z


def test_a_layer_may_be_named() -> None:
    model, loss = convert(TwoHeads(), "ova", layer="one")
    assert_type(model, TwoHeads)  # a type checker still knows it
    assert isinstance(model.one, Head)
    assert isinstance(model.two, nn.Linear)
    loss(model(torch.randn(4, 2)), Y[:4] % 3).backward()


def untold() -> nn.Module:
    model = vit()
    model.classifier = nn.Identity()
    return model


CONV = nn.Sequential(nn.Conv2d(3, 8, 1), nn.Conv2d(8, 4, 3), nn.AdaptiveAvgPool2d(1))
STRIDED = nn.Sequential(nn.Conv2d(3, 8, 1, stride=2), nn.Conv2d(8, 4, 1, groups=2))
CUT = nn.Sequential(nn.Conv2d(3, 8, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1))
MIXED = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8))
BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "no linear layer": (CONV, {}, "is no nn.Linear but Conv2d '1'"),
    "no place by itself": (STRIDED, {}, "there is no linear layer in the model (Sequential)"),
    "logits that are cut": (CUT, {}, "a ReLU ('1') follows the layer '0'"),
    "linear before the last": (MIXED, {}, "with layer=..., one of: '0'"),
    "no weights": (nn.Sequential(nn.ReLU()), {}, "there is no linear layer in the model"),
    "bare layer": (nn.Linear(2, 3), {}, "there is no linear layer in the model (Linear)"),
    "two heads": (TwoHeads(), {}, "2 linear layers have 3 outputs"),
    "wrong name": (TwoHeads(), {"layer": "three"}, "there is no layer called 'three'"),
    "no layer of that kind": (MIXED, {"layer": "1"}, "a BatchNorm1d, no nn.Linear"),
    "head gone": (untold(), {}, f"no linear layer has {K} outputs"),
    "lazy": (nn.Sequential(nn.LazyLinear(3)), {}, "run one batch"),
    "one class": (nn.Sequential(nn.Linear(2, 3)), {"classes": 1}, "2 classes"),
    "formulation": (TwoHeads(), {"formulation": "ova-md"}, "did you mean 'ova-dm'"),
}


@pytest.mark.parametrize(("model", "given", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_named_and_changes_nothing(
    model: nn.Module, given: dict[str, Any], says: str
) -> None:
    before = repr(model)
    with pytest.raises(BadInput) as error:
        convert(model, **given)
    assert says in str(error.value)
    assert repr(model) == before


def fully_convolutional() -> nn.Sequential:
    """As SqueezeNet: the logits of all places are averaged."""
    return nn.Sequential(
        nn.Conv2d(2, 8, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 3, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_a_convolution_of_one_place_is_a_head_at_every_place(formulation: str) -> None:
    torch.manual_seed(0)
    model, loss = convert(fully_convolutional(), formulation)
    x, y = torch.randn(6, 2, 5, 4), torch.arange(6) % 3
    loss(model(x), y).backward()  # starts the head
    model.eval()
    layer: Any = model[2]
    f = model[:2](x)
    with torch.no_grad():
        z = layer(f)
        assert z.shape == (6, 3, 5, 4)
        for i in range(5):
            for j in range(4):
                torch.testing.assert_close(z[:, :, i, j], layer.head(f[:, :, i, j]))
        torch.testing.assert_close(layer(f[0]), z[0])  # without an axis of examples
        assert loss.probs(model(x)).shape == (6, 3)
    again, _ = convert(model, "ova")
    assert sum(isinstance(m, Head) for m in again.modules()) == 1


def test_linear_layers_are_asked_before_convolutions() -> None:
    """A model that tells its number of classes may have as many channels inside."""

    class Told(nn.Module):
        def __init__(self, last: nn.Module) -> None:
            super().__init__()
            self.config = SimpleNamespace(num_labels=3)
            self.inside, self.last = nn.Conv2d(2, 3, 1), last

    assert find(Told(nn.Linear(3, 3))) == "last"
    assert find(Told(nn.Identity())) == "inside"


def test_a_head_can_be_exchanged_again() -> None:
    model: Any = nn.Sequential(nn.Linear(2, 8), nn.Linear(8, 3))
    for formulation in FORMULATIONS:
        model, loss = convert(model, formulation)
        assert model[1].formulation == loss.formulation == formulation
    assert sum(isinstance(m, Head) for m in model.modules()) == 1


def test_an_output_without_logits_is_named() -> None:
    _, loss = convert(nn.Sequential(nn.Linear(2, 3)), "ova")
    with pytest.raises(BadInput, match="no logits in an output of type str"):
        loss("logits", Y)


class WithDropout(nn.Module):
    """Nobody but its author knows where the dropout acts."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3))
        self.dropout = nn.Dropout(0.2)
        self.last = nn.Linear(8, K)

    def forward(self, x: Tensor) -> Tensor:
        z: Tensor = self.last(self.dropout(self.body(x)))
        return z


@pytest.mark.parametrize("formulation", FORMULATIONS)
def test_dropout_right_before_a_distance_is_switched_off_and_no_other(formulation: str) -> None:
    affine = isinstance(Head(formulation, 8, K).layer, Affine)
    net = nn.Sequential(nn.Dropout(0.4), nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, K))
    convert(net, formulation)
    assert [m.p for m in net.modules() if isinstance(m, nn.Dropout)] == [0.4, 0.3 if affine else 0]
    text: Any = bert()
    convert(text, formulation)
    assert text.dropout.p == (0.1 if affine else 0)
    assert text.bert.embeddings.dropout.p == 0.1


def test_a_dropout_that_may_stand_before_a_distance_is_told_of_and_left() -> None:
    net = WithDropout()
    with pytest.warns(UserWarning, match=r"'dropout' \(p = 0.2\).*model.dropout.p = 0"):
        convert(net, "ova-ball")
    assert net.dropout.p == 0.2
    net.dropout.p = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        convert(net, "ova-ball")
        convert(WithDropout(), "ova")


def test_a_head_starts_better_when_it_knows_the_targets() -> None:
    torch.manual_seed(0)
    y = torch.arange(60) % K
    f = torch.randn(60, 16) + 4 * torch.eye(16)[y]
    blind, told = Head("ova-ball", 16, K), Head("ova-ball", 16, K)
    blind.start(f)
    told.start(f, y)
    right = [float((head(f).argmax(1) == y).float().mean()) for head in (blind, told)]
    assert right[0] < 0.8 < right[1]
