"""The nearest of many vectors: those of a full sort, with ties, in any blocks and sizes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ova.scores import neighbours
from ova.scores.bank import Bank
from ova.scores.outputs import Outputs


def unit(n, D, seed):
    x = np.random.default_rng(seed).normal(size=(n, D)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "q", "D", "k"), [(1, 1, 3, 1), (5, 3, 2, 9), (3000, 140, 16, 50)])
def test_they_are_those_of_a_full_sort(n, q, D, k):
    bank, queries = unit(n, D, 0), unit(q, D, 1)
    distance, place = neighbours.nearest(queries, bank, k)
    full = np.linalg.norm(queries[:, None].astype(float) - bank[None].astype(float), axis=2)
    np.testing.assert_allclose(distance, np.sort(full, axis=1)[:, : min(k, n)], atol=1e-12)
    np.testing.assert_allclose(np.take_along_axis(full, place, 1), distance, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 90), st.integers(1, 12), st.integers(0, 9), st.integers(1, 7))
def test_ties_and_odd_sizes_lose_nothing(n, k, seed, values):
    r = np.random.default_rng(seed)
    bank = r.integers(0, values, (n, 2)).astype(np.float32)
    queries = r.integers(0, values, (5, 2)).astype(np.float32)
    best, place = neighbours.largest(queries, bank, k)
    full = queries @ bank.T
    np.testing.assert_array_equal(best, -np.sort(-full, axis=1)[:, :k])
    np.testing.assert_array_equal(np.take_along_axis(full, place, 1), best)
    assert all(len(set(row)) == len(row) for row in place.tolist())


def test_vectors_of_no_length_are_at_the_distance_that_they_have():
    bank = unit(400, 12, 0)
    bank[::50] = 0
    queries = np.concatenate([unit(60, 12, 1), np.zeros((2, 12), np.float32)])
    distance, _ = neighbours.nearest(queries, bank, 100)
    full = np.linalg.norm(queries[:, None].astype(float) - bank[None].astype(float), axis=2)
    np.testing.assert_allclose(distance, np.sort(full, axis=1)[:, :100], atol=1e-12)


def test_a_training_row_finds_itself_at_distance_zero():
    bank = unit(2000, 64, 0)
    distance, place = neighbours.nearest(bank[:50], bank, 1)
    assert (distance == 0).all()
    assert place[:, 0].tolist() == list(range(50))


def test_a_small_distance_keeps_its_digits():
    bank = unit(100, 8, 0)
    near = bank[:1] + np.float32(1e-5)
    distance, _ = neighbours.nearest(near, bank, 1)
    exact = np.linalg.norm(near.astype(float) - bank[:1].astype(float))
    assert distance[0, 0] == pytest.approx(exact, rel=1e-6)


def test_a_full_bank_keeps_a_draw_that_does_not_depend_on_the_blocks():
    f = np.random.default_rng(0).normal(size=(1000, 4)).astype(np.float32)
    kept = []
    for size in (1000, 64, 1):
        bank = Bank(cells=400)
        for start in range(0, 1000, size):
            bank.add(Outputs(features=f[start : start + size]))
        assert len(bank["row"]) == 100
        np.testing.assert_allclose(
            bank["unit"] * bank["length"][:, None], f[bank["row"]], rtol=1e-5, atol=1e-6
        )
        kept.append(bank["row"].tolist())
    assert kept[0] == kept[1] == kept[2]
    assert 400 < np.mean(kept[0]) < 600  # from everywhere
