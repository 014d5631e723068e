"""A head that has started does not start again, wherever its weights go; one that has not, does."""

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, stack_module_state, vmap
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils._python_dispatch import TorchDispatchMode

from ova.errors import BadInput
from ova.nn.formulations import DEFAULT, FORMULATIONS
from ova.nn.modules import Head
from ova.nn.starting import Starting

NAMES = [name for name, form in FORMULATIONS.items() if isinstance(form.head(4, 3), Starting)]
WIDTH, K = 16, 5
Make = Callable[[], Head]


def features(scale: float = 1.0) -> Tensor:
    g = torch.Generator().manual_seed(0)
    return scale * torch.randn(40, WIDTH, generator=g).relu()


def trained(name: str) -> Head:
    torch.manual_seed(1)
    head = Head(name, WIDTH, K)
    head(features())
    with torch.no_grad():
        for p in head.parameters():
            p.add_(0.5)
    return head


def own(head: Head) -> Starting:
    assert isinstance(head.layer, Starting)
    return head.layer


def same(one: nn.Module, two: nn.Module) -> bool:
    pairs = zip(one.state_dict().items(), two.state_dict().items(), strict=True)
    return all(a == b and torch.equal(p, q.to(p.dtype)) for (a, p), (b, q) in pairs)


def assigned(head: Head) -> Head:
    with torch.device("meta"):
        empty = Head(head.formulation, WIDTH, K)
    empty.load_state_dict(head.state_dict(), assign=True)
    return empty


def emptied(head: Head) -> Head:
    with torch.device("meta"):
        empty = Head(head.formulation, WIDTH, K)
    empty.to_empty(device="cpu").load_state_dict(head.state_dict())
    return empty


def replaced(head: Head) -> Head:
    """As those do who load weights one by one, without `load_state_dict`."""
    new = Head(head.formulation, WIDTH, K)
    for name, tensor in copy.deepcopy(head.state_dict()).items():
        path, _, last = name.rpartition(".")
        module = new.get_submodule(path)
        is_parameter = last in dict(module.named_parameters())
        setattr(module, last, nn.Parameter(tensor) if is_parameter else tensor)
    return new


def averaged(**options: Any) -> Callable[[Head], Head]:
    def average(head: Head) -> Head:
        mean = AveragedModel(Head(head.formulation, WIDTH, K), **options)
        for _ in range(3):
            mean.update_parameters(head)
        update_bn([features(5.0)], mean)
        assert isinstance(mean.module, Head)
        return mean.module

    return average


def moving_average(head: Head) -> Head:
    mean = copy.deepcopy(Head(head.formulation, WIDTH, K))
    with torch.no_grad():
        for _ in range(300):
            for a, b in zip(mean.state_dict().values(), head.state_dict().values(), strict=True):
                a.mul_(0.9).add_(0.1 * b)
    return mean


def as_version_one(head: Head) -> Head:
    """The flag was a boolean once."""
    new = Head(head.formulation, WIDTH, K)
    state = head.state_dict()
    new.load_state_dict(state | {"layer.started": state["layer.started"].bool()})
    return new


WAYS: dict[str, Callable[[Head], Head]] = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda head: pickle.loads(pickle.dumps(head)),
    "moved": lambda head: copy.deepcopy(head).double().float(),
    "assigned to a head on the meta device": assigned,
    "loaded into an emptied head": emptied,
    "replaced tensor by tensor": replaced,
    "stochastic weight average": averaged(),
    "average of buffers too": averaged(use_buffers=True),
    "moving average": averaged(use_buffers=True, multi_avg_fn=get_ema_multi_avg_fn(0.9)),
    "moving average by hand": moving_average,
    "saved with a boolean": as_version_one,
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", NAMES)
def test_a_trained_head_stays_as_it_is(name: str, way: Callable[[Head], Head]) -> None:
    first = trained(name)
    second = way(first).train()
    second(features(5.0))
    for one, two in zip(first.parameters(), second.parameters(), strict=True):
        torch.testing.assert_close(one, two)
    torch.testing.assert_close(second(features(3.0)), first(features(3.0)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_from_pretrained_brings_a_trained_head_back(name: str, tmp_path: Path) -> None:
    from transformers import PreTrainedConfig, PreTrainedModel

    class Classifier(PreTrainedModel):
        config_class = PreTrainedConfig

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.head = Head(name, WIDTH, K)
            self.post_init()

        def forward(self, f: Tensor) -> Tensor:
            z: Tensor = self.head(f)
            return z

    model = Classifier(PreTrainedConfig())
    model.head = trained(name)
    model.save_pretrained(tmp_path)
    again = Classifier.from_pretrained(tmp_path).train()
    again(features(5.0))
    assert same(again.head, model.head)


@pytest.mark.parametrize("name", NAMES)
def test_weights_from_before_the_start_start_again(name: str) -> None:
    head = Head(name, WIDTH, K)
    before = copy.deepcopy(head.state_dict())
    head(features())
    first = copy.deepcopy(head.state_dict())
    resets: list[Callable[[], object]] = [
        lambda: head.load_state_dict(before),
        lambda: head.load_state_dict(copy.deepcopy(before), assign=True),
        lambda: [value.copy_(before[key]) for key, value in head.state_dict().items()],
    ]
    for reset in resets:
        reset()
        assert not own(head).started
        head(features())
        assert all(torch.equal(first[key], value) for key, value in head.state_dict().items())


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == DEFAULT else pytest.mark.slow) for n in NAMES]
)
def test_one_compiled_graph_for_heads_that_start_and_heads_that_do_not(name: str) -> None:
    torch.compiler.reset()
    torch.manual_seed(0)
    fresh, plain = Head(name, WIDTH, K), trained(name)
    before = copy.deepcopy(fresh.state_dict())
    step = torch.compile(fresh, fullgraph=True, backend="aot_eager")
    first = step(features())
    loaded = Head(name, WIDTH, K)
    loaded.load_state_dict(plain.state_dict())
    for _ in range(2):
        torch.compile(loaded, fullgraph=True, backend="aot_eager")(features(5.0))
    assert same(loaded, plain)
    step(features(2.0))
    fresh.load_state_dict(before)
    torch.testing.assert_close(step(features()), first)


class Fetches(TorchDispatchMode):
    """Counts the values that leave their device."""

    count = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += op is torch.ops.aten._local_scalar_dense.default
        return op(*args, **kwargs or {})


@pytest.mark.parametrize("name", NAMES)
def test_the_flag_is_fetched_from_its_device_once(name: str) -> None:
    head = copy.deepcopy(trained(name))
    for expected in (1, 0, 0):
        with Fetches() as fetches:
            head(features())
        assert fetches.count == expected


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_shapes_and_types_are_found_without_values(name: str, dtype: torch.dtype) -> None:
    with torch.device("meta"):
        z = Head(name, WIDTH, K).to(dtype)(torch.empty(3, WIDTH, dtype=dtype))
    assert z.shape == (3, K)
    assert z.dtype == trained(name).to(dtype)(features().to(dtype)).dtype


@pytest.mark.parametrize("name", NAMES)
def test_function_transforms_take_heads_that_have_started(name: str) -> None:
    heads, f = [trained(name), trained(name)], features()
    params, buffers = stack_module_state(heads)

    def ensemble(params: Any, buffers: Any) -> Tensor:
        z: Tensor = functional_call(heads[0], (params, buffers), (f,))
        return z

    z = vmap(ensemble)(params, buffers)
    torch.testing.assert_close(z, torch.stack([head(f) for head in heads]))

    def value(weights: Any, f: Tensor, head: Head) -> Tensor:
        total: Tensor = functional_call(head, weights, (f,)).sum()
        return total

    weights = dict(heads[0].named_parameters())
    each = vmap(grad(value), in_dims=(None, 0, None))(weights, f[:, None], heads[0])
    total = torch.autograd.grad(heads[0](f).sum(), list(weights.values()))
    for name_, whole in zip(weights, total, strict=True):
        torch.testing.assert_close(each[name_].sum(0), whole)
    new = Head(name, WIDTH, K)
    with pytest.raises(BadInput, match=r"inside torch\.func"):
        grad(value)(dict(new.named_parameters()), f, new)
