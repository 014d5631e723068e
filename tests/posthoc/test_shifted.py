"""A promise for other inputs: rows taken by known weights are draws of those, and the promise holds for them."""

import numpy as np
import pytest
from scipy.stats import binom, kstest

from ova.errors import BadInput
from ova.posthoc.shifted import fit_like, fit_shifted, likelihood_ratio, taken
from ova.posthoc.threshold import fit_threshold

TIMES = 300


def world(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs x, uniform; a confidence that knows nothing; right with probability 0.97 - 0.2 x."""
    x = rng.random(n)
    return x, rng.random(n), rng.random(n) < 0.97 - 0.2 * x


def test_what_is_taken_has_the_new_distribution() -> None:
    x = np.random.default_rng(0).random(20_000)
    rows = taken(2 * x, 2, seed=0)  # of density 2 x, whose distribution function is x^2
    assert len(rows) == pytest.approx(10_000, abs=400)
    assert kstest(x[rows] ** 2, "uniform").pvalue > 1e-4
    assert kstest(x[rows], "uniform").pvalue < 1e-4


def test_the_promise_holds_for_the_new_inputs_and_without_weights_does_not() -> None:
    """Where x has density 2 x the accuracy is 0.97 - 0.2 * 2/3 < 0.84; among the held-out ones 0.87."""
    false, plain = 0, 0
    for seed in range(TIMES):
        x, c, right = world(np.random.default_rng(seed), 1500)
        false += fit_shifted((c, right), 2 * x, 0.8367, 0.9, bound=2, seed=seed).promised
        plain += fit_threshold((c, right), 0.8367, 0.9).promised
    assert false <= binom.ppf(1 - 1e-6, TIMES, 0.1)
    assert plain > TIMES / 2


def test_a_promise_that_can_be_had_is_had_and_says_on_what_it_rests() -> None:
    x, c, right = world(np.random.default_rng(0), 8000)
    found = fit_shifted((c, right), 2 * (1 - x), 0.85, bound=2)
    assert found.promised
    w = 2 * (1 - x)
    assert found.effective == pytest.approx(w.sum() ** 2 / (w**2).sum())
    assert found.kept == found.threshold.n == len(taken(w, 2, 0))
    assert f"{found.kept} of 8000 examples taken by given weights" in str(found)
    scaled = fit_shifted((c, right), 10 * w, 0.85, bound=20)
    assert scaled.threshold == found.threshold
    same = fit_shifted((c, right), np.ones(8000), 0.85, bound=1)
    assert same.threshold == fit_threshold((c, right), 0.85)


def test_too_few_examples_of_the_new_kind_promise_nothing_and_say_so() -> None:
    x, c, right = world(np.random.default_rng(0), 1000)
    found = fit_shifted((c, right), np.where(x < 0.02, 1.0, 0.0), 0.9, bound=1)
    assert not found.promised
    assert not found.threshold.answers(c).any()
    assert f"cannot be promised with {found.kept} examples, 29 would be needed" in str(found)
    with pytest.raises(BadInput, match="none is like the new inputs"):
        fit_shifted((c, right), np.where(x == x.max(), 1e-9, 0.0), 0.9, bound=1)


def test_weights_that_are_estimated_are_near_the_truth_where_the_ratio_is_logistic() -> None:
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=(5000, 2)), rng.normal([0.5, 0], 1, size=(5000, 2))
    w = likelihood_ratio(old, new)(old)
    truth = np.exp(0.5 * old[:, 0])
    assert np.corrcoef(np.log(w), np.log(truth))[0, 1] > 0.99


def test_of_an_unlabelled_sample_half_of_the_rows_teach_and_the_others_carry() -> None:
    rng = np.random.default_rng(1)
    x, c, right = world(rng, 6000)
    new = 1 - np.sqrt(rng.random(3000))  # of density 2 (1 - x)
    found = fit_like((c, right), (x, new), 0.85)
    assert found.estimated
    assert found.n == 3000
    assert found.promised
    assert "estimated weights" in str(found)
    for apart in (1.5, 50):  # without this its weights would look even, and good
        with pytest.raises(
            BadInput, match=r"% of the new inputs are unlike nearly all held-out rows"
        ):
            fit_like((c, right), (x, new + apart), 0.85)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"weights": [1.0]}, "30 examples but 1 weights"),
        ({"weights": np.full(30, -1.0)}, "must not be negative"),
        ({"weights": np.zeros(30)}, "nor all of them zero"),
        ({"weights": np.full(30, np.nan)}, "30 of 30 values of the weight are NaN"),
        ({"weights": np.full(30, 3.0)}, "3 does 2"),
        ({"weights": np.ones(30), "bound": np.inf}, "a number that no weight exceeds"),
    ],
)
def test_weights_that_cannot_be_are_told(how: dict, says: str) -> None:
    given = (np.linspace(0, 1, 30), np.ones(30))
    with pytest.raises(BadInput, match=says):
        fit_shifted(given, **{"bound": 2.0, **how})


@pytest.mark.parametrize(
    ("features", "says"),
    [
        ((np.zeros(29), np.zeros(50)), "there must be a row for each"),
        ((np.zeros((30, 2)), np.zeros(50)), "as many columns"),
        ((np.zeros(30), np.zeros(50)), "cannot be learned from 15 held-out rows and 50"),
        ((np.full(30, np.nan), np.zeros(50)), "must be finite numbers"),
    ],
)
def test_samples_that_cannot_be_compared_are_told(features: tuple, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        fit_like((np.linspace(0, 1, 30), np.ones(30)), features)
