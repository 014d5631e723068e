"""Means and covariances of one pass: those of numpy over all rows, also far from the origin."""

import numpy as np
import pytest
from sklearn.covariance import OAS

from ova.errors import BadInput
from ova.scores.moments import Moments, Regression, shrunk, whitening


@pytest.mark.parametrize("far", [0.0, 1e4])
@pytest.mark.parametrize("size", [7, 1000])
def test_one_pass_gives_what_all_rows_give(far, size):
    r = np.random.default_rng(0)
    f, y = r.normal(size=(500, 6)) + far, r.choice([0, 1, 3], 500)
    m = Moments()
    for start in range(0, 500, size):
        m.add(f[start : start + size], y[start : start + size])
    means = np.stack([f[y == k].mean(0) for k in (0, 1, 3)])
    np.testing.assert_allclose(m.mean, f.mean(0), rtol=1e-12)
    np.testing.assert_allclose(m.means, means, rtol=1e-12)
    np.testing.assert_allclose(m.covariance, np.cov(f.T, bias=True), atol=1e-11)
    centred = np.concatenate([f[y == k] - f[y == k].mean(0) for k in (0, 1, 3)])
    np.testing.assert_allclose(m.within, centred.T @ centred / 500, atol=1e-11)
    origin = far + r.normal(size=6)
    np.testing.assert_allclose(m.about(origin), (f - origin).T @ (f - origin) / 500, atol=1e-10)


def test_features_of_another_width_are_refused():
    m = Moments()
    m.add(np.zeros((2, 3)))
    with pytest.raises(BadInput, match="features of 4 numbers after features of 3"):
        m.add(np.zeros((2, 4)))


@pytest.mark.parametrize(("n", "D"), [(500, 5), (20, 60), (2, 4)])
def test_shrinkage_is_the_oracle_approximation_and_can_be_inverted(n, D):
    x = np.random.default_rng(0).normal(size=(n, D)) * np.arange(1, D + 1)
    S = x.T @ x / n
    found = shrunk(S, n)
    np.testing.assert_allclose(found, OAS(assume_centered=True).fit(x).covariance_, rtol=1e-9)
    A = whitening(found)
    np.testing.assert_allclose(A.T @ A, np.linalg.inv(found), rtol=1e-6, atol=1e-12)


def test_rows_that_do_not_vary_leave_plain_distances():
    np.testing.assert_array_equal(shrunk(np.zeros((3, 3)), 9), np.eye(3))


def test_a_head_is_found_where_some_features_never_vary():
    r = np.random.default_rng(0)
    f = r.normal(size=(200, 5))
    f[:, 2] = 1.5
    weight, bias = r.normal(size=(3, 5)), r.normal(size=3)
    m = Moments()
    found = Regression(m)
    for start in range(0, 200, 30):
        part = f[start : start + 30]
        m.add(part)
        found.add(part, part @ weight.T + bias)
    solved = found.solve()
    assert solved is not None
    np.testing.assert_allclose(f @ solved[0].T + solved[1], f @ weight.T + bias, atol=1e-9)


def test_constant_logits_are_no_head():
    m = Moments()
    found = Regression(m)
    f = np.random.default_rng(0).normal(size=(50, 3))
    m.add(f)
    found.add(f, np.zeros((50, 2)))
    assert found.solve() is None
