"""Risk against coverage of test and outside rows mixed, outside counted as errors: a slow loop's values."""

from fractions import Fraction
from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ova.metrics import Draws
from ova.metrics.evaluate import by_score, evaluate
from ova.metrics.selective import MIXED, augrc, aurc, mixture
from ova.predictions import Predictions, SetName


def in_one_order(wrong):
    """AURC and AUGRC of answers in the order of their certainty: risks, and trapezoids from 0 to all."""
    errors = [sum(wrong[: k + 1]) for k in range(len(wrong))]
    n = len(wrong)
    area = sum(Fraction(e, k + 1) for k, e in enumerate(errors)) / n
    steps = zip([0, *errors], errors, strict=False)
    return area, sum(Fraction(a + b, 2 * n * n) for a, b in steps)


def slow(inside, right, outside):
    """The mean over all orders of equal scores."""
    scores = [*inside, *outside]
    wrong = [*(not r for r in right), *(True for _ in outside)]
    orders = [
        order
        for order in permutations(range(len(scores)))
        if all(scores[a] >= scores[b] for a, b in pairwise(order))
    ]
    found = [in_one_order([wrong[i] for i in order]) for order in orders]
    return [float(sum(values) / len(found)) for values in zip(*found, strict=True)]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=4),
    st.lists(st.integers(0, 2), min_size=0, max_size=3),
)
def test_both_areas_are_those_of_a_slow_loop_ties_included(inside, outside):
    scores, right = np.array([s for s, _ in inside], float), np.array([r for _, r in inside])
    r = mixture(scores, right, np.array(outside, float))
    assert [aurc(r), augrc(r)] == pytest.approx(slow(scores, right, outside), abs=1e-12)


def test_without_ties_many_rows_have_the_areas_of_one_order():
    g = np.random.default_rng(0)
    scores, right, outside = g.normal(size=300), g.random(300) < 0.8, g.normal(size=200) - 1
    order = np.argsort(-np.concatenate([scores, outside]))
    wrong = np.concatenate([~right, np.ones(200, bool)])[order]
    r = mixture(scores, right, outside)
    assert [aurc(r), augrc(r)] == pytest.approx(list(map(float, in_one_order(wrong.tolist()))))


def test_a_published_identity_holds():
    """AUGRC = (1 - AUROC of right against wrong) acc (1 - acc) + (1 - acc)^2 / 2 (Traub et al.)."""
    from ova.metrics.ranking import auroc

    g = np.random.default_rng(1)
    r = mixture(
        g.integers(0, 9, 400).astype(float), g.random(400) < 0.7, g.integers(0, 9, 99) - 2.0
    )
    acc = r.n / (r.n + r.m)
    assert augrc(r) == pytest.approx((1 - auroc(r)) * acc * (1 - acc) + (1 - acc) ** 2 / 2)


def said(n, seed, target=None):
    g = np.random.default_rng(seed)
    p = g.dirichlet(np.ones(3), n)
    return Predictions.from_probs(
        p, g.integers(0, 3, n) if target is None else target, normalised=True
    )


def test_every_outside_set_and_score_has_rows_of_the_mixture():
    sets = {f"ood/{n}": said(30, i, np.full(30, -1)) for i, n in enumerate("ab", 1)}
    rows, _ = evaluate({"test": said(50, 0), **sets}, Draws(count=40))
    mixed = [row for row in rows if SetName(row["dataset"]).mixed]
    assert [(r["dataset"], r["score"], r["metric"]) for r in mixed] == [
        (f"test+ood/{name}", score, metric)
        for name in "ab"
        for score in ("max_p", "any", "entropy")
        for metric in MIXED
    ]
    assert all(row["n"] == 80 and row["low"] < row["value"] < row["high"] for row in mixed)
    assert {row["metric"] for row in rows if row["dataset"] == "test"} >= set(MIXED)


def test_where_nobody_knows_what_is_right_there_is_no_mixture():
    values = (np.array([1.0, 2.0]), np.array([0.0]), None)
    found = list(by_score(SetName("ood/a"), "mine", values, None))
    assert {row["dataset"] for row in found} == {"ood/a"}
    assert found[0]["value"] == 1
