"""Sets hold the right class as often as promised: exactly, with ties, and by the rule in plain words."""

import json
import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import ova
from ova.errors import BadInput
from ova.posthoc.sets import STRANGENESS, Sets, fewest, fit_sets, limit
from ova.predictions import NONE, Predictions


@pytest.mark.parametrize("coverage", [0.5, 0.6, 0.75, 0.8, 0.9])
@pytest.mark.parametrize("levels", [2, 3, 6])
def test_the_limit_covers_exactly_whatever_the_ties(coverage: float, levels: int) -> None:
    """Every sequence of six values of so many levels: each of the six is as likely the new one."""
    for values in product(range(levels), repeat=5 if levels == 6 else 6):
        inside = 0
        for new in range(len(values)):
            held = np.array([v for k, v in enumerate(values) if k != new], float)
            inside += values[new] <= limit(held, coverage)
        assert Fraction(inside, len(values)) >= Fraction(str(coverage))
        if levels == 6 and len(set(values)) == len(values):  # no more than it must be
            assert Fraction(inside, len(values)) < Fraction(str(coverage)) + Fraction(
                1, len(values)
            )


@pytest.mark.parametrize("coverage", [0.5, 0.7, 0.8, 0.9, 0.95, 0.99])
def test_the_limit_is_that_of_the_conformal_p_value(coverage: float) -> None:
    """In the set where (1 + #{held at least as strange}) / (n + 1) is above 1 - coverage, as fractions."""
    rng = np.random.default_rng(0)
    alpha = 1 - Fraction(str(coverage))
    for n in (0, 1, 2, 3, 4, 8, 9, 10, 18, 19, 20, 98, 99, 100):
        held = np.round(rng.random(n), 1)
        for s in np.arange(-0.1, 1.2, 0.05).round(2):
            p = Fraction(1 + int((held >= s).sum()), n + 1)
            assert (s <= limit(held, coverage)) == (p > alpha)
        assert (limit(held, coverage) == math.inf) == (n < fewest(coverage))


def world(rng: np.random.Generator, n: int, K: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of classes of unlike size and difficulty; the last is hard."""
    share = 1 / np.arange(1, K + 1)
    y = rng.choice(K, n, p=share / share.sum())
    z = rng.normal(size=(n, K)) + np.where(y == K - 1, 1.0, 3.0)[:, None] * np.eye(K)[y]
    return np.exp(z) / np.exp(z).sum(1, keepdims=True), y


@pytest.mark.parametrize("rounded", [1, 9])
def test_every_class_is_covered_as_promised_where_marginal_sets_miss_the_hard_one(
    rounded: int,
) -> None:
    rng = np.random.default_rng(1)
    covered = {name: np.zeros(5) for name in STRANGENESS}
    whole = dict.fromkeys(STRANGENESS, 0.0)
    for k in range(300):
        held, y = world(rng, 300)
        p, new = world(rng, 500)
        for name in STRANGENESS:
            sets = fit_sets((np.round(held, rounded), y), 0.8, name, seed=k)
            inside = sets.predict(np.round(p, rounded))[np.arange(500), new]
            whole[name] += inside.mean() / 300
            covered[name] += np.bincount(new, inside, 5) / np.bincount(new, minlength=5) / 300
    assert covered["class"].min() > 0.8 - 0.01  # three standard errors of the mean
    assert min(whole.values()) > 0.8 - 0.006
    assert covered["lac"][4] < 0.6
    if rounded == 9:  # no more than it must be, but for n + 1 in the limit
        assert max(whole["lac"], whole["aps"], whole["raps"]) < 0.815
        assert covered["class"].max() < 0.83


def in_words(p: np.ndarray, u: float, k: int, how: Sets) -> float:
    """APS and RAPS of one class of one input, by counting."""
    order = sorted(range(len(p)), key=lambda j: (-p[j], j))
    place = order.index(k)
    s = sum(p[j] for j in order[:place]) + u * p[k]
    return float(s + (how.penalty * max(0, place + 1 - how.free) if how.method == "raps" else 0))


@pytest.mark.parametrize("method", ["aps", "raps"])
def test_strangeness_is_the_one_in_plain_words(method: str) -> None:
    rng = np.random.default_rng(2)
    p = np.round(rng.dirichlet(np.ones(8), 30), 1)
    u, how = rng.random(30), Sets(method, 0.9, (), (0,) * 8, penalty=0.03, free=2)
    found = STRANGENESS[method](p, u, how)
    for i, k in product(range(30), range(8)):
        assert found[i, k] == pytest.approx(in_words(p[i], u[i], k, how), abs=1e-12)


def test_class_by_class_in_plain_words() -> None:
    rng = np.random.default_rng(3)
    p, y = rng.random((400, 3)).round(2), rng.integers(3, size=400)
    new = rng.random((50, 3)).round(2)
    found = fit_sets((p, y), 0.9).predict(new)
    for i, k in product(range(50), range(3)):
        mine = Counter(p[y == k, k].tolist())
        as_strange = sum(count for value, count in mine.items() if value <= new[i, k])
        assert found[i, k] == (Fraction(1 + as_strange, 1 + sum(mine.values())) > Fraction(1, 10))


def test_classes_with_too_few_rows_are_in_every_set_and_named() -> None:
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1, 2], [40, 19, 18])
    sets = fit_sets((rng.random((77, 4)), y), 0.95)
    assert sets.always == (2, 3)
    assert sets.predict(np.zeros((3, 4))).tolist() == [[False, False, True, True]] * 3
    assert "always in the set, with fewer than 19 examples: 2, 3" in str(sets)
    assert fit_sets((rng.random((18, 2)), np.zeros(18)), 0.95, "lac").always == (0, 1)


def test_inputs_of_none_of_the_classes_get_the_empty_set_and_carry_nothing() -> None:
    rng = np.random.default_rng(5)
    y = np.arange(900) % 4 - 1
    z = rng.normal(size=(900, 3)) - 3 + 6 * np.eye(3)[y] * (y != NONE)[:, None]
    p = 1 / (1 + np.exp(-z))
    sets, known = fit_sets((p, y), 0.9), y != NONE
    assert sets == fit_sets((p[known], y[known]), 0.9)
    empty = sets.predict(p).sum(axis=1) == 0
    assert empty[~known].mean() > 0.9
    assert empty[known].mean() < 0.12


def test_seeds_decide_the_lots_and_no_lot_is_drawn_twice() -> None:
    p, y = world(np.random.default_rng(6), 800)
    sets = fit_sets((p, y), 0.9, "aps")
    assert sets == fit_sets((p, y), 0.9, "aps")
    assert sets != fit_sets((p, y), 0.9, "aps", seed=1)
    assert (sets.predict(p) == sets.predict(p)).all()
    assert (sets.predict(p) != sets.predict(p, seed=1)).any()
    # The rows that were fitted on, seen again: with their own lots ceil(0.9 * 801) of them are inside.
    assert sets.predict(p)[np.arange(800), y].sum() != 721
    again = STRANGENESS["aps"](p, np.random.default_rng([0, 0]).random(800), sets)
    assert (again[np.arange(800), y] <= sets.limits[0]).sum() == 721


@pytest.mark.parametrize("method", STRANGENESS)
def test_json_brings_them_back_and_predictions_do_as_well_as_matrices(method: str) -> None:
    p, y = world(np.random.default_rng(7), 90)
    sets = ova.fit_sets((p, y), 0.9, method)
    assert Sets.from_json(json.loads(json.dumps(sets.to_json(), allow_nan=False))) == sets
    said = Predictions.from_probs(p, y, normalised=True, keep_probs=True)
    assert fit_sets(said, 0.9, method) == sets
    assert (sets.predict(said) == sets.predict(p)).all()
    lists = sets.lists(said, names=list("abcde"))
    assert ["".join(row) for row in lists[:9]] == [
        "".join(c for c, inside in zip("abcde", row, strict=True) if inside)
        for row in sets.predict(p)[:9]
    ]


BAD = {
    "method": (
        (([[0.5]], [0]), 0.9, "apps"),
        "no method of sets called 'apps'; did you mean 'aps'",
    ),
    "coverage": ((([[0.5]], [0]), 95, "aps"), "coverage must lie strictly between 0 and 1"),
    "all": ((([[0.5]], [0]), 1.0, "aps"), "coverage must lie strictly between 0 and 1"),
    "one of two": ((([[0.5, 1.5]], [0]), 0.9, "aps"), "row 0: a probability is NaN or outside"),
    "probability": ((([[1.5]], [0]), 0.9, "aps"), "row 0: a probability is NaN or outside"),
    "nan": ((([[math.nan]], [0]), 0.9, "lac"), "row 0: a probability is NaN or outside"),
    "target": ((([[0.5]], [1]), 0.9, "aps"), "target 1 lies outside 0..0"),
    "lengths": ((([[0.5]], [0, 0]), 0.9, "aps"), "1 rows of probabilities but 2 targets"),
}


@pytest.mark.parametrize(("asked", "says"), BAD.values(), ids=BAD)
def test_bad_input_is_named(asked: tuple, says: str) -> None:
    with pytest.raises(BadInput) as error:
        fit_sets(*asked)
    assert says in str(error.value)


def test_predictions_without_probabilities_and_of_other_classes_are_refused() -> None:
    said = Predictions.from_probs([[0.5, 0.5]], [0], normalised=True)
    with pytest.raises(BadInput, match="keep_probs=True"):
        fit_sets(said)
    with pytest.raises(BadInput, match="the sets are of 2 classes, these are 3"):
        fit_sets(([[0.5, 0.5]], [0])).predict([[0.1, 0.2, 0.3]])
    wrong = (
        {"limits": [1.0, 2.0]},
        {"limits": ["nan"]},
        {"method": "b"},
        {"coverage": 2},
        {"seed": -1},
    )
    for row in ({}, *(fit_sets(([[0.5]], [0])).to_json() | part for part in wrong)):
        with pytest.raises(BadInput, match="not sets written by ova"):
            Sets.from_json(row)
