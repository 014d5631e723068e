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


def test_the_strength_is_that_with_the_least_risk_on_validation(tmp_path: Path) -> None:
    task, fabric = task_of(), Fabric(accelerator="cpu", devices=1)
    for _ in fit(fabric, task, RECIPE, tmp_path, Machine()):
        pass
    *tried, last = read_lines(tmp_path / LOG)
    chosen = min(tried, key=lambda row: (row["validation_risk"], row["validation_loss"]))
    assert len(tried) > 1
    assert last["weight_decay"] == chosen["weight_decay"]
    tensors, facts = load(tmp_path / MODEL)
    assert facts["recipe"] == RECIPE.digest
    net = classifier.build(RECIPE, task)
    net.load_state_dict(tensors)
    alone = fitted(replace(RECIPE, weight_decay=chosen["weight_decay"]), task)
    with torch.no_grad():
        z, same = (each(task.validation.x) for each in (net, alone))  # type: ignore[attr-defined]
    torch.testing.assert_close(z, same, atol=0.05, rtol=0.01)  # convex: from wherever it began
    y = task.validation.y.numpy()
    right = (z.argmax(-1).numpy() == y)[np.argsort(-z.amax(-1).numpy(), kind="stable")]
    slow = np.mean([1 - right[: k + 1].mean() for k in range(len(y))])
    assert last["validation_risk"] == pytest.approx(slow, abs=2e-3)


@pytest.mark.parametrize("name", FORMULATIONS)
def test_every_formulation_learns(name: str) -> None:
    task, recipe = task_of(), replace(RECIPE, formulation=name, weight_decay=1e-3, epochs=10)
    if name == "isomax+":
        with pytest.raises(BadInput, match="optimiser=adamw"):
            fitted(recipe, task)
        return
    net = fitted(recipe, task)
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
