"""Cross-fitting: every row is judged by a head that an independent solver finds without its fold."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric
from sklearn.linear_model import LogisticRegression

from ova.data.task import InMemory, Task
from ova.models.pretrained import Standardised
from ova.training import classifier, full_batch
from ova.training.cross_fitting import Crossed, cross_fit
from ova.training.progress import carry_out
from ova.training.recipe import Recipe

ROWS, WIDTH, CLASSES, FOLDS = 60, 5, 3, 4
RECIPE = Recipe(
    experiment="toy", data="toy", model="mlp", formulation="softmax", epochs=60, lr=1.0,
    optimiser="lbfgs", weight_decay=1e-1,
)  # fmt: skip


@pytest.fixture(autouse=True)
def on_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """The backbone is what comes after a frozen encoder."""
    monkeypatch.setattr(
        classifier, "model", lambda _: lambda shape, _: Standardised(torch.nn.Identity(), *shape)
    )


def rows() -> tuple[np.ndarray, np.ndarray, torch.Tensor]:
    draw = np.random.default_rng(0)
    y = np.arange(ROWS) % CLASSES
    x = 2 + 3 * (draw.normal(size=(CLASSES, WIDTH))[y] + draw.normal(size=(ROWS, WIDTH)))
    return x, y, torch.from_numpy(draw.permutation(ROWS) % FOLDS)


def task_of(x: np.ndarray, y: np.ndarray) -> Task:
    every = InMemory(torch.from_numpy(x).float(), torch.from_numpy(y))
    return Task(tuple("abc"), (WIDTH,), every, every, {}, prepare=lambda x: x)


def crossed(x: np.ndarray, y: np.ndarray, fold: torch.Tensor, recipe: Recipe = RECIPE) -> Crossed:
    fabric = Fabric(accelerator="cpu", devices=1)
    return carry_out(cross_fit(task_of(x, y), (fold, fold), recipe, fabric), lambda _: None)


def test_the_head_beside_a_fold_is_what_scikit_learn_finds_without_it() -> None:
    x, y, fold = rows()
    found = crossed(x, y, fold)
    assert (len(found.nets), found.strength) == (FOLDS, RECIPE.weight_decay)
    for k, net in enumerate(found.nets):
        held = fold.numpy() == k
        mean, deviation = x[~held].mean(0), x[~held].std(0)
        strength = 1 / (RECIPE.weight_decay * int((~held).sum()))
        oracle = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000)
        oracle.fit((x[~held] - mean) / deviation, y[~held])
        with torch.no_grad():
            p = net(torch.from_numpy(x[held]).float()).softmax(-1).numpy()
        np.testing.assert_allclose(p, oracle.predict_proba((x[held] - mean) / deviation), atol=3e-3)


def test_no_row_has_a_part_in_the_head_that_judges_it() -> None:
    x, y, fold = rows()
    other_x, other_y = x.copy(), y.copy()
    mine = int(fold[0])
    other_x[0], other_y[0] = 1e3, (y[0] + 1) % CLASSES
    before, after = crossed(x, y, fold).nets, crossed(other_x, other_y, fold).nets
    for k in range(FOLDS):
        pair = zip(before[k].state_dict().values(), after[k].state_dict().values(), strict=True)
        assert all(torch.equal(a, b) for a, b in pair) == (k == mine)


def test_the_strength_has_the_least_risk_over_the_rows_of_all_folds() -> None:
    x, y, fold = rows()
    chosen = crossed(x, y, fold, replace(RECIPE, weight_decay=0.0)).strength
    tried = full_batch.WEAKER + full_batch.STRONGER
    assert chosen in tried

    def risk(strength: float) -> float:
        nets = crossed(x, y, fold, replace(RECIPE, weight_decay=strength)).nets
        with torch.no_grad():
            z = torch.stack([nets[int(k)](torch.from_numpy(x[i : i + 1]).float())[0]
                             for i, k in enumerate(fold)])  # fmt: skip
        p = z.softmax(-1).numpy()
        right = (p.argmax(1) == y)[np.argsort(-p.max(1), kind="stable")]
        return float(np.mean([1 - right[: k + 1].mean() for k in range(ROWS)]))

    at = tried.index(chosen)
    neighbours = [s for s in tried if s in (chosen * 10, chosen / 10)] or [tried[at - 1]]
    assert risk(chosen) <= min(map(risk, neighbours)) + 0.01  # they were compared roughly fitted
