"""Promises that every formulation keeps, those of today and those to come."""

import math

import pytest
import torch
from torch import Tensor

from ova.nn.formulations import DEFAULT, FORMULATIONS, PAPER, Formulation
from ova.nn.heads import LastLayer
from ova.nn.links import SIGMOID

EVERY = pytest.mark.parametrize("name", FORMULATIONS)
# A graph takes a second; `make check` makes those of the formulations that are used most.
EVERY_GRAPH = pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in (*PAPER, DEFAULT) else pytest.mark.slow)
        for name in FORMULATIONS
    ],
)
ONE_VS_ALL = [name for name, form in FORMULATIONS.items() if not form.normalised]


def features(n: int, width: int = 16, scale: float = 1.0, seed: int = 0) -> Tensor:
    return scale * torch.randn(n, width, generator=torch.Generator().manual_seed(seed)).relu()


def targets(n: int, classes: int) -> Tensor:
    return torch.arange(n) % classes


def made(name: str, width: int = 16, classes: int = 5) -> tuple[Formulation, LastLayer]:
    """A head with centres apart from each other, as after some training."""
    torch.manual_seed(0)
    form = FORMULATIONS[name]
    head = form.head(width, classes)
    head.start(features(32, width))
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return form, head


def gradients(loss: Tensor, head: LastLayer, f: Tensor) -> list[Tensor]:
    return list(torch.autograd.grad(loss.sum(), [f, *head.parameters()]))


@EVERY
def test_loss_is_one_value_per_example(name: str) -> None:
    form, head = made(name)
    for n in (0, 1, 7):
        z = head(features(n).requires_grad_())
        assert z.shape == (n, 5)
        assert form.loss(z, targets(n, 5)).shape == (n,)
        form.loss(z, targets(n, 5)).sum().backward()


@EVERY
def test_gradcheck(name: str) -> None:
    form, head = made(name)
    head = head.double()
    f = (features(6) + 0.1).double().requires_grad_()
    y = torch.tensor([0, 1, 2, 3, 4, -1])
    assert torch.autograd.gradcheck(lambda f: form.loss(head(f), y), f)
    for parameter in head.parameters():  # the check changes them in place, one number at a time
        assert torch.autograd.gradcheck(lambda _: form.loss(head(f), y), parameter)


@EVERY
@pytest.mark.parametrize("scale", [0.0, 1e-6, 1.0, 100.0, 1e4])
@pytest.mark.parametrize("zero", [False, True], ids=["started", "all-zero parameters"])
def test_finite_at_any_scale(name: str, scale: float, zero: bool) -> None:
    form, head = made(name)
    if zero:
        with torch.no_grad():
            for parameter in head.parameters():
                parameter.zero_()
    f = features(8, scale=scale).requires_grad_()
    for y in (targets(8, 5), torch.full((8,), -1)):
        loss = form.loss(head(f), y)
        assert loss.isfinite().all()
        assert all(g.isfinite().all() for g in gradients(loss, head, f))


@EVERY
@pytest.mark.parametrize("classes", [2, 150, 20_000])
def test_any_number_of_classes(name: str, classes: int) -> None:
    form = FORMULATIONS[name]
    if name == "ova-dm-released" and classes > 1000:
        classes = 1000  # its second layer alone is K x K
    head = form.head(8, classes)
    f = features(4, 8).requires_grad_()
    loss = form.loss(head(f), targets(4, classes))
    assert loss.isfinite().all()
    assert all(g.isfinite().all() for g in gradients(loss, head, f))


@EVERY
def test_far_from_the_own_centre_and_near_another(name: str) -> None:
    form = FORMULATIONS[name]
    z = torch.tensor([[-30.0, -1.0]], requires_grad=True)  # d_target 30, d_other 1
    loss = form.loss(z, torch.tensor([0]))
    loss.sum().backward()
    assert loss.isfinite().all()
    assert z.grad is not None
    assert z.grad.isfinite().all()


@EVERY
def test_probabilities(name: str) -> None:
    form, head = made(name)
    for scale in (0.0, 1.0, 1e4):
        p = form.probs(head(features(8, scale=scale)))
        assert ((p >= 0) & (p <= 1)).all()
        if form.normalised:
            torch.testing.assert_close(p.sum(-1), torch.ones(8))
    z = head(features(8))
    torch.testing.assert_close(form.log_probs(z).exp(), form.probs(z))


@pytest.mark.parametrize("name", ONE_VS_ALL)
def test_one_vs_all_is_never_renormalised(name: str) -> None:
    """Changing the logit of one class leaves the probabilities of the others alone."""
    form = FORMULATIONS[name]
    z = torch.full((1, 4), -3.0)
    other = z.clone()
    other[0, 0] = -0.1
    torch.testing.assert_close(form.probs(z)[0, 1:], form.probs(other)[0, 1:], rtol=0, atol=0)


SLOW = {  # log p_k of the paper, from distances or affine logits
    "softmax": lambda z: z - z.exp().sum(-1, keepdim=True).log(),
    "dm": lambda z: z - z.exp().sum(-1, keepdim=True).log(),
    "ova": lambda z: -(1 + (-z).exp()).log(),
    "ova-dm": lambda z: math.log(2) - (1 + (-z).exp()).log(),
}


@pytest.mark.parametrize("name", SLOW)
def test_the_paper(name: str) -> None:
    """Logits, probabilities and losses of the 2 x 2, from the definitions in float64."""
    form, head = made(name)
    f, y = features(12), targets(12, 5)
    w = head.get_parameter("weight").double()
    if name in ("softmax", "ova"):
        z = f.double() @ w.T + head.get_parameter("bias").double()
    else:
        s = head.get_buffer("scale").double() if name == "ova-dm" else 1
        z = -s * (f.double()[:, None] - w).square().sum(-1).sqrt()
    log_p = SLOW[name](z)
    own = torch.nn.functional.one_hot(y, 5).bool()
    slow = torch.where(own, -log_p, 0.0 if form.normalised else -(1 - log_p.exp()).log()).sum(-1)
    torch.testing.assert_close(head(f).double(), z, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(form.probs(head(f)).double(), log_p.exp(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(form.loss(head(f), y).double(), slow, rtol=1e-4, atol=1e-5)


def test_isomax_scales_the_loss_only() -> None:
    z, y = -torch.rand(4, 3), targets(4, 3)
    plain, isomax = FORMULATIONS["dm"], FORMULATIONS["dm-isomax"]
    torch.testing.assert_close(isomax.loss(z, y), plain.loss(10 * z, y))
    torch.testing.assert_close(isomax.probs(z), plain.probs(z))


def test_released_trains_with_one_link_and_predicts_with_another() -> None:
    z, y = -torch.rand(4, 3), targets(4, 3)
    released = FORMULATIONS["ova-dm-released"]
    torch.testing.assert_close(released.loss(z, y), FORMULATIONS["ova"].loss(z, y))
    torch.testing.assert_close(released.probs(z), 2 * SIGMOID.p(z))


@EVERY
@pytest.mark.parametrize("dtype", [torch.half, torch.bfloat16])
def test_half_precision(name: str, dtype: torch.dtype) -> None:
    form, head = made(name)
    head = head.to(dtype)
    f, y = features(6).to(dtype).requires_grad_(), targets(6, 5)
    loss = form.loss(head(f), y)
    assert loss.dtype == torch.float32
    assert loss.isfinite().all()
    for g in gradients(loss, head, f):
        assert g.dtype == (dtype if g.dim() else torch.float32)  # single numbers keep all digits
        assert g.isfinite().all()


@EVERY
def test_autocast(name: str) -> None:
    form, head = made(name)
    f, y = features(6).requires_grad_(), targets(6, 5)
    with torch.autocast("cpu", torch.bfloat16):
        loss = form.loss(head(f), y)
    torch.testing.assert_close(loss, form.loss(head(f), y), rtol=0.05, atol=0.05)
    assert all(g.dtype == torch.float32 for g in gradients(loss, head, f))


@EVERY_GRAPH
def test_compiled_whole(name: str) -> None:
    form, head = made(name)
    f, y = features(6).requires_grad_(), targets(6, 5)
    torch.compiler.reset()
    step = torch.compile(lambda f, y: form.loss(head(f), y), fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(step(f, y), form.loss(head(f), y))
    for ours, theirs in zip(
        gradients(step(f, y), head, f), gradients(form.loss(head(f), y), head, f), strict=True
    ):
        torch.testing.assert_close(ours, theirs)


@EVERY_GRAPH
def test_exported_with_any_batch_size(name: str) -> None:
    class Predictor(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head = head

        def forward(self, f: Tensor) -> Tensor:
            return form.probs(self.head(f))

    form, head = made(name)
    program = torch.export.export(
        Predictor().eval(), (features(4),), dynamic_shapes=({0: torch.export.Dim("batch")},)
    )
    for n in (1, 9):
        torch.testing.assert_close(
            program.module()(features(n)), form.probs(head(features(n))), rtol=1e-4, atol=1e-5
        )
