"""Far from everything is none: along rays on which the embedding grows, for every formulation."""

import re
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import ova
from ova.nn.formulations import FORMULATIONS, Formulation
from ova.nn.heads import LastLayer

CLASSES, INPUTS, WIDTH = 10, 5, 32
RAYS, FAR, NONE = 1000, 1e3, 0.05
PROMISED = [name for name, form in FORMULATIONS.items() if form.far_is_none]
EVERY = pytest.mark.parametrize("name", FORMULATIONS)


def network(seed: int) -> nn.Sequential:
    torch.manual_seed(seed)
    layers = [nn.Linear(INPUTS, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU()]
    return nn.Sequential(*layers)


def data() -> tuple[Tensor, Tensor]:
    """Classes in several directions, and the radius of the data is about 3."""
    g = torch.Generator().manual_seed(0)
    y = torch.arange(400) % CLASSES
    middle = torch.randn(CLASSES, INPUTS, generator=g)
    return middle[y] + 0.3 * torch.randn(400, INPUTS, generator=g), y


def rays() -> Tensor:
    u = torch.randn(RAYS, INPUTS, generator=torch.Generator().manual_seed(1))
    return nn.functional.normalize(u)


def trained(form: Formulation, seed: int, steps: int) -> tuple[nn.Sequential, LastLayer]:
    """A random network, or one after some steps, with the head of a formulation."""
    x, y = data()
    body, head = network(seed), form.head(WIDTH, CLASSES)
    head.start(body(x), y)
    optimiser = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=0.01)
    for _ in range(steps):
        optimiser.zero_grad()
        form.loss(head(body(x)), y).mean().backward()
        optimiser.step()
    return body.eval().requires_grad_(False), head.eval().requires_grad_(False)


def confidence_far_away(form: Formulation, seed: int, steps: int) -> tuple[Tensor, Tensor]:
    """Largest p at a thousand radii along each ray, and whether the embedding has grown there."""
    body, head = trained(form, seed, steps)
    radius = data()[0].norm(dim=1).max()
    near, far = body(radius * rays()), body(FAR * radius * rays())
    grew = far.norm(dim=1) > FAR / 10 * near.norm(dim=1).clamp(min=1e-3)
    return form.probs(head(far)).amax(1), grew


@pytest.mark.parametrize("steps", [0, 50])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", PROMISED)
def test_none_wherever_the_embedding_grows(name: str, seed: int, steps: int) -> None:
    p, grew = confidence_far_away(FORMULATIONS[name], seed, steps)
    assert grew.float().mean() > 0.9  # a ReLU network without rays that grow would prove nothing
    assert float(p[grew].max()) < NONE


def longest_way(head: LastLayer) -> Tensor:
    """Embeddings a thousand times as long as those of the start, also where no weight looks."""
    g = torch.Generator().manual_seed(2)
    directions = torch.randn(RAYS, WIDTH, generator=g)
    widest = next(p for p in head.parameters() if p.dim() == 2 and p.shape[1] == WIDTH)
    unseen = torch.linalg.svd(widest)[2][CLASSES:]  # orthogonal to the K rows of the weights
    f = torch.cat([directions, unseen, torch.ones(1, WIDTH)])
    return FAR * 10 * nn.functional.normalize(f)


@EVERY
def test_the_flag_is_right_about_every_direction_of_the_embedding(name: str) -> None:
    """For those that promise it, no direction is sure; for the others at least one is."""
    form = FORMULATIONS[name]
    _, head = trained(form, 0, 0)
    p = form.probs(head(longest_way(head))).amax(1)
    assert (float(p.max()) < NONE) == form.far_is_none


def test_ours_promise_it_and_nothing_that_sums_to_one_can() -> None:
    assert {"ova-horizon", "ova-island", "ova-roof", "ova-dm"} <= set(PROMISED)
    assert not any(FORMULATIONS[name].normalised for name in PROMISED)


def test_the_documentation_says_the_same() -> None:
    page = Path(ova.__file__).parents[2] / "docs" / "formulations.md"
    if not page.exists():
        pytest.skip("installed without its documentation")
    rows = re.findall(r"^\| `([^`]+)` \|.*\| (none|-) \|$", page.read_text("utf-8"), re.M)
    assert {name: said == "none" for name, said in rows} == {
        name: form.far_is_none for name, form in FORMULATIONS.items()
    }
