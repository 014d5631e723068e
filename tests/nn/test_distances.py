"""Distances against float64 subtraction, on both ways of computing them."""

import pytest
import torch
from torch import Tensor

from ova.errors import BadInput
from ova.nn import distances as module
from ova.nn.distances import distances


@pytest.fixture(params=["small", "large"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every promise holds for the exact operator of small sizes and the products of large ones."""
    if request.param == "large":
        monkeypatch.setattr(module, "SMALL", -1)
        monkeypatch.setattr(module, "CHUNK", 256)  # several parts, and several lots of pairs
    return str(request.param)


def exact(f: Tensor, w: Tensor) -> Tensor:
    """The definition, in float64."""
    return (f.double()[..., None, :] - w.double()).square().sum(-1).sqrt()


def rows(n: int, width: int, length: float, seed: int = 0) -> Tensor:
    x = torch.randn(n, width, generator=torch.Generator().manual_seed(seed))
    scaled: Tensor = length * x / x.norm(dim=-1, keepdim=True)
    return scaled


CASES = {
    "ordinary": (rows(9, 64, 8.0), rows(33, 64, 8.0, 1)),
    "far out, all near each other": (
        2500 + rows(9, 64, 3.0),
        2500 + rows(33, 64, 3.0, 1),
    ),
    "far out, each beside its own centre": (
        rows(9, 64, 2500.0),
        torch.cat([rows(9, 64, 2500.0) + rows(9, 64, 0.0255, 1), rows(24, 64, 2500.0, 2)]),
    ),
    "small, each beside its own centre": (
        rows(9, 64, 0.25),
        torch.cat([rows(9, 64, 0.25) + rows(9, 64, 2.55e-6, 1), rows(24, 64, 0.25, 2)]),
    ),
    "beside one centre, others small": (
        rows(9, 64, 2500.0),
        torch.cat([rows(9, 64, 2500.0) + rows(9, 64, 0.0255, 1), rows(24, 64, 1.0, 2)]),
    ),
    "two heaps far apart": (
        torch.cat([rows(9, 64, 0.5) + 300, rows(9, 64, 0.5, 1) - 300]),
        torch.cat([rows(9, 64, 0.5, 2) + 300, rows(9, 64, 0.5, 3) - 300]),
    ),
    "tiny": (rows(9, 64, 1e-6), rows(33, 64, 1e-6, 1)),
    "huge": (rows(9, 64, 1e6), rows(33, 64, 1e6, 1)),
    "one example": (rows(1, 64, 5.0), rows(33, 64, 5.0, 1)),
    "one feature": (rows(9, 1, 5.0), rows(33, 1, 5.5, 1)),
}


@pytest.mark.parametrize("case", CASES)
def test_agree_with_subtraction_in_float64(case: str, way: str) -> None:
    f, w = CASES[case]
    torch.testing.assert_close(distances(f, w).double(), exact(f, w), rtol=1e-3, atol=0)


@pytest.mark.parametrize("case", CASES)
def test_gradients_agree_with_float64(case: str, way: str) -> None:
    f, w = (x.clone().requires_grad_() for x in CASES[case])
    f64, w64 = (x.detach().double().requires_grad_() for x in (f, w))
    g = torch.randn(len(f), len(w), generator=torch.Generator().manual_seed(5))
    distances(f, w).backward(g)
    exact(f64, w64).backward(g.double())
    for ours, theirs in ((f, f64), (w, w64)):
        assert ours.grad is not None
        assert theirs.grad is not None
        torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=2e-2, atol=5e-3)


def test_the_plain_expansion_would_fail_here() -> None:
    f, w = CASES["beside one centre, others small"]
    plain = (f.square().sum(1)[:, None] + w.square().sum(1) - 2 * f @ w.T).clamp(min=0).sqrt()
    assert (plain - exact(f, w)).abs().max() > 0.1


def test_gradcheck(way: str) -> None:
    f = torch.randn(5, 7, dtype=torch.double, requires_grad=True)
    w = torch.randn(6, 7, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(distances, (f, w))


def test_a_second_derivative_is_refused(way: str) -> None:
    f, w = torch.randn(3, 4, requires_grad=True), torch.randn(5, 4)
    with pytest.raises((BadInput, RuntimeError), match=r"second derivative|not implemented"):
        torch.autograd.grad(distances(f, w).sum(), f, create_graph=True)[0].sum().backward()


@pytest.mark.parametrize("shift", [0.0, 1000.0])
def test_zero_distance_has_zero_gradient(shift: float, way: str) -> None:
    f = torch.full((3, 4), shift, requires_grad=True)
    w = torch.full((5, 4), shift, requires_grad=True)
    d = distances(f, w)
    d.sum().backward()
    assert d.eq(0).all()
    assert f.grad is not None
    assert w.grad is not None
    assert f.grad.eq(0).all()
    assert w.grad.eq(0).all()


@pytest.mark.parametrize("shape", [(0, 4), (1, 4), (4,), (2, 3, 4)])
def test_any_leading_shape(shape: tuple[int, ...], way: str) -> None:
    f, w = torch.ones(shape, requires_grad=True), torch.zeros(5, 4)
    d = distances(f, w)
    assert d.shape == (*shape[:-1], 5)
    d.sum().backward()
    assert f.grad is not None
    torch.testing.assert_close(f.grad, torch.full(shape, 2.5))


@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_precision_comes_back_in_float32(dtype: torch.dtype, way: str) -> None:
    f, w = (x.to(dtype).requires_grad_() for x in CASES["ordinary"])
    d = distances(f, w)
    assert d.dtype == torch.float32
    torch.testing.assert_close(d.double(), exact(f, w), rtol=1e-5, atol=0)
    d.sum().backward()
    assert f.grad is not None
    assert f.grad.dtype == dtype


def test_autocast_keeps_the_digits(way: str) -> None:
    f, w = CASES["far out, all near each other"]
    with torch.autocast("cpu", torch.bfloat16):
        d = distances(f, w)
    torch.testing.assert_close(d.double(), exact(f, w), rtol=1e-3, atol=0)


def test_the_operators_are_well_formed() -> None:
    f, w = (x.clone().requires_grad_() for x in CASES["far out, each beside its own centre"])
    torch.library.opcheck(module._forward_op, (f, w))


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_compiled_whole(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", -1)
    f, w = (x.clone().requires_grad_() for x in CASES["beside one centre, others small"])
    quick = torch.compile(distances, fullgraph=True, backend=backend)
    torch.testing.assert_close(quick(f, w), distances(f, w))
    quick(f, w).sum().backward()
    df, f.grad = f.grad, None
    distances(f, w).sum().backward()
    torch.testing.assert_close(df, f.grad)


def test_exported_graph_has_plain_operators_and_all_digits() -> None:
    class Net(torch.nn.Module):
        def forward(self, f: Tensor, w: Tensor) -> Tensor:
            return distances(f, w)

    f, w = CASES["beside one centre, others small"]
    batch = torch.export.Dim("batch", min=0)
    program = torch.export.export(Net(), (f, w), dynamic_shapes=({0: batch}, None))
    assert "ova" not in str(program.graph)
    torch.testing.assert_close(program.module()(f, w).double(), exact(f, w), rtol=1e-3, atol=0)
    assert program.module()(f[:1], w).shape == (1, 33)


def test_no_tensor_of_batch_by_features_by_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", -1)
    f, w = torch.randn(32, 512), torch.randn(300, 512)
    f.requires_grad_()
    with torch.profiler.profile(profile_memory=True) as record:
        distances(f, w).sum().backward()
    largest = max(abs(event.self_cpu_memory_usage) for event in record.events())
    assert largest <= 4 * max(module.CHUNK, f.numel(), w.numel(), 32 * 300)
