"""Half precision of weights is the user's choice; the single numbers of a head keep all their digits."""

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from ova.nn.convert import convert
from ova.nn.formulations import FORMULATIONS
from ova.nn.modules import Head

WIDTH, K = 32, 20


def features() -> Tensor:
    g = torch.Generator().manual_seed(0)
    return torch.randn(64, WIDTH, generator=g).relu()


def started(name: str) -> Head:
    torch.manual_seed(0)
    head = Head(name, WIDTH, K)
    head.start(features(), torch.arange(64) % K)
    return head.eval()


def numbers(module: nn.Module) -> dict[str, Tensor]:
    return {name: x for name, x in module.state_dict().items() if not x.dim()}


CASTS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "bfloat16": lambda m: m.bfloat16(),
    "half": lambda m: m.half(),
    "to": lambda m: m.to(torch.bfloat16),
    "to a device": lambda m: m.to("cpu", torch.float16),
    "like another": lambda m: m.to(torch.zeros(1, dtype=torch.bfloat16)),
    "inside a model": lambda m: nn.Sequential(m).bfloat16()[0],
    "to and fro": lambda m: m.half().float().bfloat16(),
}


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
@pytest.mark.parametrize("name", FORMULATIONS)
def test_single_numbers_stay_exact(name: str, cast: Callable[[nn.Module], nn.Module]) -> None:
    head = started(name)
    before = copy.deepcopy(numbers(head))
    after = numbers(cast(head))
    assert after.keys() == before.keys()
    assert all(torch.equal(before[n], x) and x.dtype == torch.float32 for n, x in after.items())
    assert all(p.dtype != torch.float32 for p in head.parameters() if p.dim())
    assert all(x.dtype == torch.float64 for x in numbers(head.double()).values())


@pytest.mark.parametrize("name", FORMULATIONS)
def test_probabilities_in_bfloat16_are_those_of_its_weights(name: str) -> None:
    head = started(name)
    rounded = copy.deepcopy(head).bfloat16()
    exact = copy.deepcopy(rounded).double()  # the same weights, and all digits in between
    f = features().bfloat16()
    z = rounded(f)
    if z.dtype != torch.float32:
        pytest.skip("an affine layer has the precision of its user")
    p, q = rounded.probs(z), exact.probs(exact(f.double()))
    torch.testing.assert_close(p.double(), q, rtol=0.02, atol=0)


@pytest.fixture
def half_by_default() -> Iterator[None]:
    torch.set_default_dtype(torch.bfloat16)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("half_by_default")
@pytest.mark.parametrize("name", FORMULATIONS)
def test_a_head_made_in_half_precision_has_exact_numbers(name: str) -> None:
    head = Head(name, WIDTH, K)
    assert all(x.dtype == torch.float32 for x in numbers(head).values())
    assert all(p.dtype == torch.bfloat16 for p in head.parameters() if p.dim())


@pytest.mark.parametrize("name", ["ova-dm", "ova-ball"])
def test_a_model_loaded_in_half_precision_has_exact_numbers(name: str, tmp_path: Path) -> None:
    from transformers import PreTrainedConfig, PreTrainedModel

    class Classifier(PreTrainedModel):
        config_class = PreTrainedConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.head = Head(name, WIDTH, K)
            self.post_init()

    model = Classifier(PreTrainedConfig())
    model.head = started(name)
    model.save_pretrained(tmp_path)
    again = Classifier.from_pretrained(tmp_path, dtype=torch.bfloat16)
    assert again.head.layer.weight.dtype == torch.bfloat16
    assert all(torch.equal(numbers(model.head)[n], x) for n, x in numbers(again.head).items())


@pytest.mark.parametrize("name", FORMULATIONS)
def test_half_precision_trains_and_exports(name: str) -> None:
    net, loss = convert(nn.Sequential(nn.Linear(4, WIDTH), nn.Linear(WIDTH, K)).bfloat16(), name)
    x = torch.randn(8, 4, dtype=torch.bfloat16)
    loss(net(x), torch.arange(8)).backward()
    assert all(p.grad is not None and p.grad.dtype == p.dtype for p in net.parameters())
    graph = torch.export.export(net.eval(), (x,)).module()
    torch.testing.assert_close(graph(x), net(x), rtol=1e-2, atol=1e-2)
