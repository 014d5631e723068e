"""The score that decides: the smallest mixed area beyond noise, or the joint where nothing is known outside."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ova.errors import BadInput
from ova.metrics.choice import area, choose, mixed
from ova.metrics.selective import aurc, mixture


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), min_size=1, max_size=8),
    st.lists(st.integers(0, 3), min_size=0, max_size=5),
    st.integers(0, 99),
)
def test_the_area_of_a_draw_is_that_of_its_rows_repeated(inside, outside, seed):
    scores, right = np.array([s for s, _ in inside], float), np.array([r for _, r in inside])
    o, draw = np.array(outside, float), np.random.default_rng(seed)
    mine = draw.integers(len(scores), size=len(scores))
    theirs = draw.integers(max(len(o), 1), size=len(o))
    counts = [np.bincount(mine, minlength=len(scores)), np.bincount(theirs, minlength=len(o))]
    ones = np.ones(len(scores) + len(o))
    found = area(mixed(scores, right, o), np.stack([np.concatenate(counts), ones]))
    slow = [aurc(mixture(scores[mine], right[mine], o[theirs])), aurc(mixture(scores, right, o))]
    assert found == pytest.approx(slow, abs=1e-12)


def made(n=600, m=300, apart=2.0):
    """Inside rows, their answers, outside rows: max_p tells errors, `nearest` outsiders, the joint both."""
    g = np.random.default_rng(1)
    right = g.random(n) < 0.9
    errors, outsiders = g.normal(size=n) + 2 * right, g.normal(size=n) + apart
    inside = {
        "nearest": outsiders,
        "energy_nearest": errors + outsiders,
        "max_p": errors,
        "energy": errors.copy(),
    }
    a, b = g.normal(size=m) + 1, g.normal(size=m)
    outside = {"nearest": b, "energy_nearest": a + b, "max_p": a, "energy": a.copy()}
    return inside, right, outside


def test_with_outside_rows_the_smallest_mixed_area_is_chosen():
    inside, right, outside = made()
    inside["energy"][inside["energy"] > 2] = np.inf  # a sure score may be infinite
    found = choose(inside, right, outside)
    slow = {n: aurc(mixture(inside[n], right, outside[n])) for n in inside}
    assert found.areas == pytest.approx(slow)
    assert found.score == min(slow, key=slow.__getitem__) == "energy_nearest"
    assert f"{slow['max_p']:.4f}" in found.why


def test_what_is_better_by_luck_alone_does_not_replace_max_p():
    g = np.random.default_rng(0)
    lucky = 0
    for _ in range(40):  # scores without any difference, of which the best of twenty looks good
        inside = {n: g.normal(size=80) for n in ["max_p", *(f"own{i}" for i in range(20))]}
        outside = {n: g.normal(size=20) for n in inside}
        found = choose(inside, g.random(80) < 0.9, outside)
        assert min(found.areas.values()) < found.areas["max_p"] or found.score == "max_p"
        lucky += found.score != "max_p"
    assert lucky <= 6  # one in twenty, and what forty trials of it may be


def test_a_joint_that_is_taken_on_no_evidence_is_not_lost_by_evidence_for_it():
    g = np.random.default_rng(0)
    right = g.random(1000) < 0.9
    errors, outsiders = g.normal(size=1000) + 2 * right, g.normal(size=1000) + 1
    a, b = g.normal(size=40) + 1, g.normal(size=40)
    inside = {"max_p": errors, "energy_nearest": errors + 0.3 * outsiders}
    outside = {"max_p": a, "energy_nearest": a + 0.3 * b}
    for i in range(
        20
    ):  # so many were tried that what the best wins is no more than luck might give
        inside[f"own{i}"], outside[f"own{i}"] = g.normal(size=1000), g.normal(size=40)
    assert choose(inside, right).score == "energy_nearest"
    found = choose(inside, right, outside)
    assert found.score == "energy_nearest"
    assert f"below the {found.areas['max_p']:.4f} of max_p" in found.why
    worse = {**outside, "energy_nearest": a + 2}  # evidence against it still takes it away
    assert choose(inside, right, worse).score == "max_p"
    better = {**inside, "own0": inside["energy_nearest"]}
    told = choose(better, right, {**outside, "own0": outside["energy_nearest"] - 0.01})
    assert told.areas["own0"] < told.areas["energy_nearest"]
    assert told.score == "energy_nearest"
    assert "the best, own0 with" in told.why


def test_equal_scores_go_to_the_simpler():
    inside, right, outside = made(apart=6)
    equal, outer = (
        {**dict.fromkeys(("sirc", "knn", "energy"), v["energy_nearest"]), "max_p": v["max_p"]}
        for v in (inside, outside)
    )
    assert choose(equal, right, outer).score == "energy"


def test_without_outside_rows_the_joint_is_taken_unless_it_tells_errors_worse():
    inside, right, outside = made()
    close = {**inside, "energy_nearest": inside["max_p"] + 0.05 * inside["nearest"]}
    assert choose(close, right).score == "energy_nearest"
    assert choose(close, right, {n: v[:0] for n, v in outside.items()}).score == "energy_nearest"
    bad = choose({**inside, "energy_nearest": inside["nearest"]}, right)
    assert bad.score == "max_p"
    assert "energy_nearest tells them worse beyond noise" in bad.why
    other = choose({**inside, "energy_nearest": inside["nearest"], "sirc": inside["max_p"]}, right)
    assert other.score == "sirc"
    few = {n: v[:29] for n, v in outside.items()}
    assert choose(close, right, {**few, "energy_nearest": few["nearest"]}).score == "energy_nearest"
    assert choose({"max_p": inside["max_p"], "sirc": inside["max_p"]}, right).score == "sirc"
    assert choose({"max_p": inside["max_p"], "knn": inside["nearest"]}, right).score == "max_p"


def test_the_same_rows_choose_the_same_score_in_any_order_of_names():
    inside, right, outside = made(apart=0.7)
    turned = dict(reversed(inside.items()))
    assert choose(inside, right, outside) == choose(turned, right, outside)


def test_what_cannot_be_compared_is_refused():
    inside, right, _ = made()
    with pytest.raises(BadInput, match="max_p are missing"):
        choose({"energy": inside["energy"]}, right)
    with pytest.raises(BadInput, match="no held-out rows"):
        choose({"max_p": right[:0]}, right[:0])
    with pytest.raises(BadInput, match="NaN"):
        choose({"max_p": np.where(right, 1, np.nan)}, right)
    with pytest.raises(BadInput, match="but 3 answers"):
        choose(inside, right[:3])
