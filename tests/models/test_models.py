"""Every backbone, present and future: features of the promised width, and the literature's size."""

import re

import pytest
import torch
from torch import nn

from made_models import IMAGE, shape_of
from ova.errors import BadInput
from ova.models import MODELS, model

SMALL = [name for name in MODELS if name != "wrn-28-10"]  # that one needs seconds for a batch

# Published numbers of parameters: backbone and head of that many classes together.
PUBLISHED = {
    "resnet20": (IMAGE, 10, 269_722),
    "wrn-28-10": (IMAGE, 10, 36_479_194),
    "wrn-16-2": (IMAGE, 10, 691_674),
    "resnet50": ((3, 224, 224), 1000, 25_557_032),
    "bert-mini": ((30_522, 32), 0, 11_170_560),
}


def inputs(name: str, batch: int = 4) -> torch.Tensor:
    shape = shape_of(name)
    torch.manual_seed(0)
    if len(shape) == 2:
        return torch.randint(1, shape[0], (batch, 9))
    return torch.randn(batch, *shape)


@pytest.mark.parametrize("name", PUBLISHED)
def test_size_is_the_published_one(name: str) -> None:
    shape, classes, published = PUBLISHED[name]
    backbone = MODELS[name](shape, 0.0)
    head = classes * (backbone.features + 1)
    assert sum(p.numel() for p in backbone.parameters()) + head == published


@pytest.mark.parametrize("name", SMALL)
def test_gives_features_of_the_promised_width(name: str) -> None:
    f = MODELS[name](shape_of(name), 0.1).eval()(inputs(name))
    assert f.shape == (4, MODELS[name](shape_of(name), 0.1).features)
    assert f.dtype == torch.float32
    assert f.isfinite().all()


@pytest.mark.parametrize("name", SMALL)
def test_rows_do_not_depend_on_their_batch(name: str) -> None:
    backbone, x = MODELS[name](shape_of(name), 0.1).eval(), inputs(name)
    with torch.no_grad():
        together, alone = backbone(x)[:1], backbone(x[:1])
    size = float(together.abs().max())  # untrained residual networks give features in the hundreds
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5 * max(1.0, size))


@pytest.mark.parametrize("name", SMALL)
def test_gradient_reaches_every_parameter(name: str) -> None:
    backbone = MODELS[name](shape_of(name), 0.0)
    backbone(inputs(name)).square().sum().backward()
    unused = [n for n, p in backbone.named_parameters() if p.grad is None]
    assert unused == []


@pytest.mark.parametrize("name", SMALL)
def test_dropout_acts_in_training_only(name: str) -> None:
    backbone, x = MODELS[name](shape_of(name), 0.5), inputs(name, batch=8)
    backbone.train()
    assert not torch.equal(backbone(x), backbone(x))
    backbone.eval()
    assert torch.equal(backbone(x), backbone(x))


@pytest.mark.parametrize("name", MODELS)
def test_wrong_shape_is_named(name: str) -> None:
    with pytest.raises(BadInput, match=re.sub("-(small|medium|mean|wide)$", "", name)):
        model(name)((3, 32, 32, 32), 0.0)


@pytest.mark.parametrize("length", [1, 32])
@pytest.mark.parametrize("name", [name for name in MODELS if len(shape_of(name)) == 2])
def test_padding_changes_nothing(name: str, length: int) -> None:
    """What is said of a text does not depend on how long its neighbours in the batch are."""
    backbone, x = MODELS[name]((60, 32 + 7), 0.0).eval(), inputs(name)[:, :length]
    padded = torch.cat([x, torch.zeros(4, 7, dtype=torch.long)], dim=1)
    with torch.no_grad():
        torch.testing.assert_close(backbone(padded), backbone(x), rtol=1e-4, atol=1e-5)


def test_bert_is_the_one_of_transformers() -> None:
    """What is skipped in the last layer never reaches the pooled output."""
    backbone, x = MODELS["bert-mini"]((60, 32), 0.0).eval(), inputs("bert-mini")
    x[0, 5:] = 0
    network = backbone.get_submodule("body.network")
    with torch.no_grad():
        whole = network(input_ids=x, attention_mask=(x != 0).long()).pooler_output
        torch.testing.assert_close(backbone(x), whole, rtol=1e-5, atol=1e-6)


def test_the_mean_is_that_of_the_word_pieces_without_padding() -> None:
    backbone, x = MODELS["bert-mini-mean"]((60, 32), 0.0).eval(), inputs("bert-mini-mean")
    x[0, 5:] = 0
    network = backbone.get_submodule("body.network")
    with torch.no_grad():
        whole = network(input_ids=x, attention_mask=(x != 0).long()).last_hidden_state
        expected = torch.stack([whole[0, :5].mean(0), *whole[1:].mean(1)])
        torch.testing.assert_close(backbone(x), expected, rtol=1e-5, atol=1e-6)


def test_resnet50_strides_in_the_3_by_3_convolution() -> None:
    strides = [
        (m.kernel_size, m.stride)
        for m in MODELS["resnet50"]((3, 64, 64), 0.0).modules()
        if isinstance(m, nn.Conv2d) and m.stride == (2, 2)
    ]
    # The first layer, then in each of three stages the 3 x 3 convolution and the shortcut.
    assert sorted(strides) == [((1, 1), (2, 2))] * 3 + [((3, 3), (2, 2))] * 3 + [((7, 7), (2, 2))]


@pytest.mark.parametrize(("depth", "width"), [(10, 1), (16, 3), (22, 2)])
def test_wide_resnets_of_any_depth_and_width(depth: int, width: int) -> None:
    backbone = model(f"wrn-{depth}-{width}")(IMAGE, 0.0)
    convolutions = sum(isinstance(m, nn.Conv2d) for m in backbone.modules())
    shortcuts = 2 if width == 1 else 3  # they count these in the depth, but not the head
    assert convolutions == depth - (3 - shortcuts)
    assert backbone.features == 64 * width


@pytest.mark.parametrize("name", ["wrn-27-10", "wrn-4-1", "wrn-28-0"])
def test_impossible_wide_resnet_says_what_is_possible(name: str) -> None:
    with pytest.raises(BadInput, match="10, 16, 22, 28"):
        model(name)


def test_unknown_model_has_a_suggestion() -> None:
    with pytest.raises(BadInput, match="did you mean 'resnet20'"):
        model("resnet-20")


@pytest.mark.parametrize("side", [8, 17, 28, 105])
def test_convnet_takes_any_size(side: int) -> None:
    assert MODELS["convnet"]((1, side, side), 0.0)(torch.zeros(2, 1, side, side)).shape == (2, 256)


def pictures(count: int = 64) -> torch.Tensor:
    """Images whose neighbouring pixels are alike, as those of photographs are."""
    torch.manual_seed(0)
    rough = torch.randn(count, 3, 20, 20) + 2 * torch.randn(count, 1, 20, 20)
    return torch.nn.functional.avg_pool2d(rough, 3, stride=1)


def test_whitening_leaves_patches_uncorrelated_and_is_never_trained() -> None:
    backbone, x = MODELS["quick"]((3, 18, 18), 0.0), pictures()
    backbone.start(x)
    white = backbone.get_submodule("white")
    assert [*white.parameters()] == []
    z = white(x).transpose(0, 1).flatten(1)
    half = len(z) // 2
    torch.testing.assert_close(z[half:], -z[:half])
    moments = z[:half] @ z[:half].T / z.shape[1]
    torch.testing.assert_close(moments, torch.eye(half), rtol=0, atol=0.1)  # EPS damps the smallest
    assert float((x[..., 1:] * x[..., :-1]).mean()) > 0.3  # they were correlated


def test_quick_begins_as_the_identity_on_the_channels_it_has() -> None:
    convolutions = [m for m in MODELS["quick"](IMAGE, 0.0).modules() if isinstance(m, nn.Conv2d)]
    assert [(c.in_channels, c.out_channels) for c in convolutions] == [
        (24, 64), (64, 64), (64, 256), (256, 256), (256, 256), (256, 256),
    ]  # fmt: skip
    x = torch.randn(2, 256, 5, 5)
    for c in convolutions:
        torch.testing.assert_close(
            c(x[:, : c.in_channels])[:, : c.in_channels], x[:, : c.in_channels]
        )
