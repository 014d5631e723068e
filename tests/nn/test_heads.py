"""How heads start, and that they start once."""

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from ova.errors import BadInput
from ova.nn.ball import Ball
from ova.nn.formulations import FORMULATIONS
from ova.nn.heads import Affine
from ova.nn.horizon import Horizon
from ova.nn.island import Island
from ova.nn.roof import Roof
from ova.nn.starting import StartedDistance, Starting, class_offsets, positive

ELSEWHERE = ("-zero", "-released", "-smooth")  # those that start as somebody else does
FROM_RARE = [
    name
    for name, form in FORMULATIONS.items()
    if not form.normalised and not name.endswith(ELSEWHERE)
]
STARTING = [StartedDistance, Ball, Roof, Horizon, Island]


def features(n: int = 64, width: int = 32, scale: float = 1.0, shift: float = 0.0) -> Tensor:
    g = torch.Generator().manual_seed(0)
    return shift + scale * torch.randn(n, width, generator=g).relu()


@pytest.mark.parametrize("name", FROM_RARE)
@pytest.mark.parametrize("classes", [2, 10, 150, 3000])
@pytest.mark.parametrize(("scale", "shift"), [(1, 0), (0.01, 0), (1, 50)])
def test_first_batch_has_p_near_one_in_k(
    name: str, classes: int, scale: float, shift: float
) -> None:
    if not issubclass(FORMULATIONS[name].head, Starting):
        scale, shift = 0.1, 0  # an affine start knows nothing of the data
    form, f = FORMULATIONS[name], features(scale=scale, shift=shift)
    head = form.head(32, classes)
    head.start(f)
    assert 0.8 < float(form.probs(head(f)).detach().mean()) * classes < 1.25


def test_the_papers_start() -> None:
    f = features()
    p = FORMULATIONS["ova-zero"].probs(FORMULATIONS["ova-zero"].head(32, 10)(0 * f))
    assert p.eq(0.5).all()
    for name in ("dm", "ova-dm-zero"):
        z = FORMULATIONS[name].head(32, 10)(f)
        torch.testing.assert_close(z, -f.norm(dim=1, keepdim=True).expand(-1, 10))


def test_centres_of_distances_start_within_a_tenth_of_the_embeddings_spread() -> None:
    torch.manual_seed(0)
    head, f = StartedDistance(32, 200), features(400, shift=3)
    head.start(f)
    away, spread = (
        torch.linalg.vector_norm(x - f.mean(0), dim=-1) for x in (head.centres.detach(), f)
    )
    assert float(away.square().mean().sqrt()) == pytest.approx(
        0.1 * float(spread.square().mean().sqrt()), rel=0.05
    )


def test_ball_has_the_scale_of_its_distances() -> None:
    head, f = Ball(32, 10), features()
    head.start(f)
    z = head(f).detach()
    assert float(z.std()) == pytest.approx(2, rel=1e-3)


def test_no_embedding_leaves_the_ball_s_space_and_a_short_one_stays_short() -> None:
    head, f = Ball(32, 10), features()
    head.start(f)
    bound = Ball.size * 32**0.5
    for scale, least, most in ((1e4, 0.999, 1), (1, 0.1, 0.5), (1e-3, 0, 0.01)):
        length = head.embed(scale * f).norm(dim=-1) / bound
        assert least < float(length.min()) <= float(length.max()) <= most * (1 + 1e-6)


def test_ball_centres_start_amid_the_embeddings_whether_targets_are_known_or_not() -> None:
    f = features() + features(1)  # all embeddings share a part, as behind a ReLU
    for y in (None, torch.arange(len(f)) % 10):
        head = Ball(32, 10)
        head.start(f, y)
        mean = head.embed(f).mean(0)
        assert (head.centres.mean(0) - mean).norm() < 0.3 * mean.norm()


@pytest.mark.parametrize("kind", STARTING)
def test_centres_start_in_the_directions_of_their_classes(kind: type[Starting]) -> None:
    torch.manual_seed(0)
    head, f = kind(32, 4), features(400)
    y = torch.arange(400) % 4
    f = f + 5 * torch.eye(32)[y]
    head.start(f, y)
    assert head(f).argmax(-1).eq(y).float().mean() > 0.95


@pytest.mark.parametrize("kind", [Horizon, Island])
@pytest.mark.parametrize("scale", [0.01, 1, 100])
def test_horizon_starts_at_one_unit_with_centres_towards_the_classes(
    kind: type[Horizon], scale: float
) -> None:
    torch.manual_seed(0)
    y = torch.arange(400) % 4
    f = scale * (features(400) + 5 * torch.eye(32)[y])
    head = kind(32, 4)
    head.start(f, y)
    squares = (f - f.mean(0)).square().sum(-1)
    assert (head.fall * squares.mean()).item() == pytest.approx(1, rel=1e-4)
    means = torch.stack([f[y == k].mean(0) for k in range(4)])
    assert torch.cdist(head.centres, means).argmin(1).tolist() == [0, 1, 2, 3]
    assert head(f).argmax(-1).eq(y).float().mean() > 0.9


def test_horizon_never_falls_below_its_floor() -> None:
    head = Horizon(32, 10)
    head.start(features())
    with torch.no_grad():
        head.log_fall.fill_(-100)
    assert (head.fall / head.unit).item() == pytest.approx(0.25)


def test_island_is_its_formula() -> None:
    torch.manual_seed(0)
    head, f = Island(32, 10), features() + 3
    head.start(f, torch.arange(64) % 10)
    c, m = head.centres, head.mean
    away = (c - m).square().sum(-1) / 2 - torch.cdist(f, c).square()
    torch.testing.assert_close(head(f), head.bias + head.fall * away, rtol=1e-4, atol=1e-3)


def test_what_excites_nothing_is_on_no_island_and_on_every_horizon() -> None:
    """At the mean the horizon knows the bias alone; an island is lower the farther its centre is."""
    for kind, lower in ((Horizon, 0.0), (Island, 0.5)):
        head = kind(32, 10)
        head.start(features())
        far = head.fall * (head.centres - head.mean).square().sum(-1)
        torch.testing.assert_close(head(head.mean), head.bias - lower * far, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", STARTING)
def test_starts_at_the_first_forward_of_training_and_never_again(kind: type[Starting]) -> None:
    torch.manual_seed(0)
    head = kind(32, 10)
    head.eval()(features())
    assert not head.started
    head.train()(features(0))
    assert not head.started
    head(features())
    assert head.started
    before = copy.deepcopy(head.state_dict())
    head(features(scale=3))
    assert all(torch.equal(before[key], value) for key, value in head.state_dict().items())


@pytest.mark.parametrize("kind", STARTING)
def test_the_same_features_and_seed_give_the_same_start(kind: type[Starting]) -> None:
    def start(explicitly: bool) -> dict[str, Tensor]:
        torch.manual_seed(3)
        head = kind(32, 10)
        torch.manual_seed(99 * explicitly)  # the start itself draws nothing
        head.start(features()) if explicitly else head(features())
        return head.state_dict()

    once, twice = start(True), start(False)
    assert all(torch.equal(once[key], twice[key]) for key in once)


@pytest.mark.parametrize("kind", STARTING)
def test_a_loaded_head_does_not_start_again(kind: type[Starting]) -> None:
    first = kind(32, 10)
    first.start(features())
    second = kind(32, 10)
    second.load_state_dict(first.state_dict())
    z = second.train()(features(scale=5))
    torch.testing.assert_close(z, first.eval()(features(scale=5)))
    untouched = kind(32, 10)
    untouched.load_state_dict(kind(32, 10).state_dict())
    untouched.train()(features())
    assert untouched.started


@pytest.mark.parametrize("kind", STARTING)
@pytest.mark.parametrize("f", [torch.zeros(8, 32), torch.ones(1, 32), torch.full((4, 32), 1e4)])
def test_a_batch_without_spread_gives_a_finite_start(kind: type[Starting], f: Tensor) -> None:
    head = kind(32, 10)
    head.start(f)
    assert all(value.isfinite().all() for value in head.state_dict().values())
    assert head(f).isfinite().all()


def test_a_measure_of_nothing_is_one() -> None:
    assert positive(torch.tensor([0.0, 1e-7, 0.5])).tolist() == [1, 1, 0.5]


@pytest.mark.parametrize("kind", STARTING)
@pytest.mark.parametrize("shape", [(0, 32), (4, 31)])
def test_a_start_needs_embeddings(kind: type[Starting], shape: tuple[int, int]) -> None:
    with pytest.raises(BadInput, match="embeddings of size 32"):
        kind(32, 10).start(torch.ones(shape))


@pytest.mark.parametrize("kind", STARTING)
def test_starts_inside_a_compiled_step(kind: type[Starting]) -> None:
    torch.manual_seed(0)
    plain = kind(32, 10)
    compiled = copy.deepcopy(plain)
    torch.compiler.reset()
    step = torch.compile(compiled, fullgraph=True, backend="aot_eager")
    for f in (features(), features(scale=2)):
        torch.testing.assert_close(step(f), plain(f))
    assert compiled.started


@pytest.fixture
def two_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One process that believes to be one of two."""
    store = torch.distributed.FileStore(  # type: ignore[attr-defined]
        str(tmp_path / "store"), 1
    )
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 2)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("two_processes")
@pytest.mark.parametrize("kind", STARTING)
def test_several_processes_must_start_together(kind: type[Starting]) -> None:
    head = kind(32, 10)
    with pytest.raises(BadInput, match="same embeddings in all of them"):
        head(features())
    head.start(features())
    head(features())


@pytest.mark.parametrize(("width", "classes"), [(0, 5), (5, 1), (5, 0)])
def test_impossible_sizes(width: int, classes: int) -> None:
    with pytest.raises(BadInput, match="at least 1 feature and 2 classes"):
        Affine(width, classes)


def learns(name: str, steps: int = 60) -> float:
    """Accuracy on 20 separable classes after a few steps of a small network."""
    torch.manual_seed(0)
    y = torch.arange(20).repeat(20)
    x = 3 * torch.randn(20, 8)[y] + 0.3 * torch.randn(400, 8)
    form = FORMULATIONS[name]
    body, head = torch.nn.Sequential(torch.nn.Linear(8, 64), torch.nn.ReLU()), form.head(64, 20)
    optimiser = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        form.loss(head(body(x)), y).mean().backward()
        optimiser.step()
    return float((head(body(x)).argmax(1) == y).float().mean())


@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_formulation_learns(name: str) -> None:
    slow = name in ("ova-dm-zero", "ova-dm-released")
    assert learns(name) > (0.3 if slow else 0.9)


def test_distances_learn_sooner_from_one_in_k() -> None:
    assert learns("ova-dm", 20) > learns("ova-dm-zero", 20) + 0.1


def test_class_means_are_drawn_to_zero_as_if_one_more_lay_there() -> None:
    f = torch.tensor([[2.0, 4.0], [4.0, 2.0], [9.0, 9.0], [1.0, 3.0]])
    offsets = class_offsets(f, torch.tensor([0, 0, -1, 2]), 3)
    assert offsets.tolist() == [[2.0, 2.0], [0.0, 0.0], [0.5, 1.5]]
