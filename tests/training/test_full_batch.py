"""A head fitted to convergence: the answer is that of an independent solver, whatever the start."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from ova.data.task import InMemory, Task
from ova.errors import BadInput
from ova.files import read_lines
from ova.models.pretrained import Standardised
from ova.nn.formulations import FORMULATIONS
from ova.training import classifier, full_batch
from ova.training.checkpoint import load
from ova.training.engine import Machine
from ova.training.loop import fit
from ova.training.recipe import Recipe
from ova.training.run_folder import LOG, MODEL

ROWS, WIDTH, CLASSES = 240, 6, 3
RECIPE = Recipe(
    experiment="toy",
    data="toy",
    model="mlp",
    formulation="ova",
    epochs=60,
    lr=1.0,
    optimiser="lbfgs",
)


def examples(seed: int, none: int = 0) -> InMemory:
    draw = np.random.default_rng(seed)
    centres = np.random.default_rng(0).normal(size=(CLASSES, WIDTH))
    y = draw.integers(0, CLASSES, ROWS)
    x = 3 + 5 * (centres[y] + draw.normal(size=(ROWS, WIDTH)))
    y[:none] = -1
    return InMemory(torch.from_numpy(x).float(), torch.from_numpy(y))


def task_of(none: int = 0) -> Task:
    names = tuple("abc"[:CLASSES])
    return Task(names, (WIDTH,), examples(1, none), examples(2), {}, prepare=lambda x: x)


@pytest.fixture(autouse=True)
def on_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backbone is what comes after a frozen encoder."""
    monkeypatch.setattr(
        classifier, "model", lambda _: lambda shape, _: Standardised(torch.nn.Identity(), *shape)
    )


def fitted(recipe: Recipe, task: Task) -> classifier.Classifier:
    *_, (net, _) = full_batch.fit(task, recipe, Fabric(accelerator="cpu", devices=1))
    return net


def standard(task: Task) -> tuple[np.ndarray, np.ndarray]:
    x = task.train.x.double().numpy()  # type: ignore[attr-defined]
    return (x - x.mean(0)) / x.std(0), task.train.y.numpy()


@pytest.mark.parametrize("strength", [1e-1, 1e-3])
def test_softmax_finds_what_scikit_learn_finds(strength: float) -> None:
    task = task_of()
    net = fitted(replace(RECIPE, formulation="softmax", weight_decay=strength), task)
    x, y = standard(task)
    oracle = LogisticRegression(C=1 / (strength * ROWS), tol=1e-10, max_iter=10_000).fit(x, y)
    with torch.no_grad():
        p = net(task.train.x).softmax(-1).numpy()  # type: ignore[attr-defined]
    np.testing.assert_allclose(p, oracle.predict_proba(x), atol=2e-3)


@pytest.mark.parametrize("none", [0, 30])
@pytest.mark.parametrize("weight", [1.0, 3.0])
def test_one_vs_all_is_k_regressions_that_are_convex(none: int, weight: float) -> None:
    """Each found by itself in float64, the bias free, the rows of none of the classes at their weight."""
    task, strength = task_of(none), 1e-2
    net = fitted(replace(RECIPE, weight_decay=strength, none_weight=weight), task)
    x, y = standard(task)
    count = np.where(y < 0, weight, 1)
    with torch.no_grad():
        z = net(task.train.x).numpy()  # type: ignore[attr-defined]
    for k in range(CLASSES):
        sign = np.where(y == k, 1.0, -1.0)

        def loss(w: np.ndarray, sign: np.ndarray = sign) -> float:
            losses = np.logaddexp(0, -sign * (x @ w[:-1] + w[-1]))
            return float((count * losses).mean() + strength / 2 * w[:-1] @ w[:-1])

        w = minimize(loss, np.zeros(WIDTH + 1), tol=1e-10).x
        np.testing.assert_allclose(z[:, k], x @ w[:-1] + w[-1], atol=2e-2)


def test_the_strength_is_that_with_the_least_validation_loss(tmp_path: Path) -> None:
    task, fabric = task_of(), Fabric(accelerator="cpu", devices=1)
    for _ in fit(fabric, task, RECIPE, tmp_path, Machine()):
        pass
    log = read_lines(tmp_path / LOG)
    losses = [row["validation_loss"] for row in log]
    assert len(losses) > 2
    assert [row["weight_decay"] for row in log] == list(full_batch.STRENGTHS[: len(log)])
    tensors, facts = load(tmp_path / MODEL)
    assert facts["recipe"] == RECIPE.digest
    net = classifier.build(RECIPE, task)
    net.load_state_dict(tensors)
    with torch.no_grad():
        z = net(task.validation.x)  # type: ignore[attr-defined]
    found = float(FORMULATIONS["ova"].loss(z, task.validation.y).mean())
    assert found == pytest.approx(min(losses), rel=1e-5)
    assert log[-1]["loss"] < log[0]["loss"]


@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_formulation_learns(name: str) -> None:
    task = task_of()
    net = fitted(replace(RECIPE, formulation=name, weight_decay=1e-3, epochs=10), task)
    with torch.no_grad():
        z = net(task.train.x)  # type: ignore[attr-defined]
    assert z.isfinite().all()
    assert float((z.argmax(-1) == task.train.y).float().mean()) > 0.8


def test_a_feature_that_never_varies_and_two_fits_are_no_matter(tmp_path: Path) -> None:
    task = task_of()
    x = task.train.x.clone()  # type: ignore[attr-defined]
    x[:, 0] = 7.0
    task = replace(task, train=InMemory(x, task.train.y))
    recipe = replace(RECIPE, weight_decay=1e-2)
    one, other = (fitted(recipe, task) for _ in "ab")
    for p, q in zip(one.state_dict().values(), other.state_dict().values(), strict=True):
        assert p.isfinite().all()
        assert torch.equal(p, q)


def test_a_network_that_moves_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = torch.nn.Linear(WIDTH, WIDTH)
    monkeypatch.setattr(classifier, "model", lambda _: lambda *_: Standardised(moving, WIDTH))
    with pytest.raises(BadInput, match="lbfgs fits a last layer to features that stay"):
        fitted(RECIPE, task_of())
