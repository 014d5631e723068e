"""Logits, probabilities and losses by name, against formulas written out slowly in float64."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ova.nn.formulations import FORMULATIONS
from ova.nn.modules import Head

Numbers = NDArray[np.float64]
N, D, K = 12, 6, 4


def sigmoid(z: Numbers) -> Numbers:
    return 1 / (1 + np.exp(-z))


def twice_sigmoid(z: Numbers) -> Numbers:
    return 2 * sigmoid(z)


def softmax(z: Numbers) -> Numbers:
    e = np.exp(z - z.max(-1, keepdims=True))
    return np.asarray(e / e.sum(-1, keepdims=True))


def distance(f: Numbers, w: Numbers) -> Numbers:
    return np.asarray([[np.sqrt(((one - centre) ** 2).sum()) for centre in w] for one in f])


# From the embedding and the head's own numbers to its logits.


def affine(f: Numbers, v: dict[str, Numbers]) -> Numbers:
    return np.asarray(f @ v["weight"].T + v["bias"])


def minus_distance(f: Numbers, v: dict[str, Numbers]) -> Numbers:
    return -distance(f, v["weight"])


def fixed_scale(f: Numbers, v: dict[str, Numbers]) -> Numbers:
    return -v["scale"] * distance(f, v["weight"])


def learned_scale(f: Numbers, v: dict[str, Numbers]) -> Numbers:
    return -np.exp(v["log_scale"]) * distance(f, v["weight"])


def between_logits(f: Numbers, v: dict[str, Numbers]) -> Numbers:
    return -distance(f @ v["affine.weight"].T + v["affine.bias"], v["distance.weight"])


def ball(f: Numbers, v: dict[str, Numbers]) -> Numbers:
    floor = 1 / v["rate"] ** 2
    middle, spread = f.mean(-1, keepdims=True), f.var(-1, keepdims=True)
    e = 0.1 * (f - middle) / np.sqrt(spread + floor)
    return np.asarray(v["radius"] - np.exp(v["log_scale"]) * distance(e, v["weight"]))


# The loss of one example with target y, by its probabilities.


def of_own(p: Numbers, y: int) -> float:
    return float(-np.log(p[y]))


def binary(yes: Callable[[float], float], no: Callable[[float], float]) -> Any:
    """The sum of K answers; for target -1 all are no."""
    return lambda p, y: sum(yes(q) if k == y else no(q) for k, q in enumerate(p))


def log_yes(p: float) -> float:
    return float(-np.log(p))


def log_no(p: float) -> float:
    return float(-np.log(1 - p))


cross_entropies = binary(log_yes, log_no)
focal = binary(lambda p: (1 - p) ** 2 * log_yes(p), lambda p: p**2 * log_no(p))
asymmetric = binary(log_yes, lambda p: p**2 * log_no(p))
brier = binary(lambda p: (1 - p) ** 2, lambda p: p**2)


def smoothed(p: Numbers, y: int) -> float:
    t = [0.1 / K + 0.9 * (k == y) for k in range(K)]
    return sum(t[k] * log_yes(p[k]) + (1 - t[k]) * log_no(p[k]) for k in range(K))


def smoothed_softmax(p: Numbers, y: int) -> float:
    return float(-np.log(p) @ [0.1 / K + 0.9 * (k == y) for k in range(K)])


@dataclass(frozen=True)
class Formula:
    """What a formulation is; `trained` gives the probabilities that its loss looks at."""

    z: Callable[[Numbers, dict[str, Numbers]], Numbers]
    p: Callable[[Numbers], Numbers]
    loss: Callable[[Numbers, int], float]
    trained: Callable[[Numbers], Numbers] | None = None


FORMULAS = {
    "softmax": Formula(affine, softmax, of_own),
    "dm": Formula(minus_distance, softmax, of_own),
    "ova": Formula(affine, sigmoid, cross_entropies),
    "ova-dm": Formula(fixed_scale, twice_sigmoid, cross_entropies),
    "ova-ball": Formula(ball, sigmoid, cross_entropies),
    "ova-zero": Formula(affine, sigmoid, cross_entropies),
    "ova-dm-zero": Formula(minus_distance, twice_sigmoid, cross_entropies),
    "dm-isomax": Formula(minus_distance, softmax, of_own, lambda z: softmax(10 * z)),
    "dm-scaled": Formula(learned_scale, softmax, of_own),
    "ova-dm-released": Formula(between_logits, twice_sigmoid, cross_entropies, sigmoid),
    "softmax-smooth": Formula(affine, softmax, smoothed_softmax),
    "ova-smooth": Formula(affine, sigmoid, smoothed),
    "ova-focal": Formula(affine, sigmoid, focal),
    "ova-asymmetric": Formula(affine, sigmoid, asymmetric),
    "ova-brier": Formula(affine, sigmoid, brier),
}


def trained(name: str) -> tuple[Head, torch.Tensor]:
    """A head after a start, with every number moved somewhere else."""
    torch.manual_seed(0)
    head, f = Head(name, D, K).double(), torch.randn(N, D, dtype=torch.double)
    head.start(f)
    with torch.no_grad():
        for p in head.parameters():
            p.add_(0.3 * torch.randn_like(p))
    return head, f


@pytest.mark.parametrize("name", FORMULAS)
def test_logits_probabilities_and_losses_are_the_formulas(name: str) -> None:
    formula, form = FORMULAS[name], FORMULATIONS[name]
    head, f = trained(name)
    own = {key: value.numpy() for key, value in head.layer.state_dict().items()}
    z = head(f).detach()
    np.testing.assert_allclose(z, formula.z(f.numpy(), own), rtol=1e-9)
    np.testing.assert_allclose(form.probs(z), formula.p(z.numpy()), rtol=1e-9)
    np.testing.assert_allclose(form.log_probs(z), np.log(formula.p(z.numpy())), rtol=1e-7)
    y = np.arange(N) % K
    p = (formula.trained or formula.p)(z.numpy())
    expected = [formula.loss(p[i], y[i]) for i in range(N)]
    np.testing.assert_allclose(form.loss(z, torch.tensor(y)), expected, rtol=1e-9)


@pytest.mark.parametrize("name", ["ova", "ova-dm", "ova-focal", "ova-asymmetric", "ova-brier"])
def test_none_of_the_classes_is_no_to_each(name: str) -> None:
    formula, form = FORMULAS[name], FORMULATIONS[name]
    head, f = trained(name)
    z = head(f).detach()
    expected = [formula.loss(p, -1) for p in formula.p(z.numpy())]
    none = torch.full((N,), -1)
    np.testing.assert_allclose(form.loss(z, none), expected, rtol=1e-9)
