"""Of the inputs named as belonging to no class no more are wrong than promised: exactly, with ties."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ova
from ova.errors import BadInput
from ova.posthoc.outside import outside, stepped_up
from ova.predictions import NONE, Predictions


def slow(new: list[float], held: list[float], fdr: Fraction) -> list[bool]:
    """Conformal p-values and Benjamini-Hochberg in fractions."""
    p = [Fraction(1 + sum(h <= s for h in held), len(held) + 1) for s in new]
    count = max(
        (j for j in range(1, len(p) + 1) if sorted(p)[j - 1] <= fdr * j / len(p)), default=0
    )
    return [count > 0 and x <= fdr * count / len(p) for x in p]


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12),
    st.lists(st.integers(0, 9), min_size=1, max_size=25),
    st.sampled_from(["0.05", "0.1", "0.2", "0.3", "0.333", "0.5", "0.9"]),
)
def test_the_named_are_those_in_plain_words(new: list[int], held: list[int], fdr: str) -> None:
    found = outside(np.array(new, float), np.array(held, float), float(fdr))
    expected = slow([*map(float, new)], [*map(float, held)], Fraction(fdr))
    assert found.named.tolist() == expected
    p = [(1 + sum(h <= s for h in held)) / (len(held) + 1) for s in new]
    assert found.p.tolist() == p


@pytest.mark.parametrize("fdr", [0.3, 0.5, 0.75])
@pytest.mark.parametrize("far", [(), (0,), (0, 1), (2, 2, 0)])
def test_the_share_of_wrongly_named_is_bounded_exactly_whatever_the_ties(
    fdr: float, far: tuple[int, ...]
) -> None:
    """All ways to draw five inputs of the classes with values 1, 1, 2, 3, 3: three held out, two new."""
    total, count = Fraction(0), 0
    for values in set(product((1, 2, 3), repeat=5)):
        weight = 1  # independent draws of three values, equally likely
        held, new = np.array(values[:3], float), np.array([*values[3:], *far], float)
        named = outside(new, held, fdr).named
        if named.any():
            total += weight * Fraction(int(named[:2].sum()), int(named.sum()))
        count += weight
    assert total / count <= Fraction(str(fdr)) * Fraction(2, 2 + len(far))


def test_without_ties_and_without_outside_the_bound_is_nearly_reached() -> None:
    """All orders of four held and two new: which of the ranks are the new ones is uniform."""
    wrong = 0
    for a, b in product(range(6), repeat=2):
        if a < b:
            held = np.array([x for x in range(6) if x not in (a, b)], float)
            wrong += bool(outside(np.array([a, b], float), held, 0.4).named.any())
    assert Fraction(wrong, comb(6, 2)) <= Fraction(2, 5)
    assert Fraction(wrong, comb(6, 2)) >= Fraction(1, 3)


def test_predictions_do_as_well_as_scores_and_rows_of_none_carry_nothing() -> None:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.3), 300)
    y = np.where(rng.random(300) < 0.2, NONE, 0)
    held = Predictions.from_probs(p, y, normalised=True)
    new = held.take(slice(0, 60))
    found = ova.outside(new, held, 0.2)
    assert (found.p == outside(new.confidence, held.confidence[y != NONE], 0.2).p).all()
    assert found.n == int((y != NONE).sum())
    own = rng.normal(size=300)
    carried = replace(held, scores={"own": own})
    by_own = outside(carried, carried, 0.2, score="own")
    assert (by_own.named == outside(own, own[y != NONE], 0.2).named).all()
    assert "of 60 inputs belong to no class: of those named at most 0.2 are" in str(found)


def test_large_whole_numbers_do_not_overflow() -> None:
    counts = np.full(1000, 1, np.int64)
    assert stepped_up(counts, 10**9, 0.123456789123456).all()
    assert not stepped_up(np.full(3, 5), 5, 0.999999999999).any()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (([0.5], [0.5], 0.0), "fdr must lie strictly between 0 and 1"),
        (([0.5], [0.5], 1.0), "fdr must lie strictly between 0 and 1"),
        (([0.5], [], 0.1), "no examples of the classes"),
        (([np.nan], [0.5], 0.1), "1 of 1 values of the score are NaN"),
    ],
)
def test_bad_input_is_named(asked: tuple, says: str) -> None:
    with pytest.raises(BadInput) as error:
        outside(*asked)
    assert says in str(error.value)
