"""Bootstrap intervals: seeded, the same vectorised or one by one, and as wide as theory says."""

import numpy as np
import pytest

from narrowing import there
from ova.errors import BadInput
from ova.metrics import (
    DETECTION,
    METRICS,
    Draws,
    bootstrap,
    detection,
    paired_difference,
)
from ova.metrics.metric import Mean
from ova.metrics.resampling import bootstrap_all, bootstrap_ranking
from ova.predictions import Predictions
from ova.scores import SCORES


def said(n=400, seed=0, target=None):
    r = np.random.default_rng(seed)
    p = r.dirichlet(np.ones(3), n)
    y = np.array([r.choice(3, p=row) for row in p]) if target is None else target
    return Predictions.from_probs(p, y, normalised=True, keep_probs=True)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_has_an_interval_around_it_that_a_seed_repeats(name):
    p, draws = said(), Draws(count=60, seed=3)
    once, again = (bootstrap(METRICS[name], p, draws=draws) for _ in range(2))
    assert once == again
    if once is None:
        assert METRICS[name](p) is None
    else:
        assert once.value == METRICS[name](p)
        assert once.low < once.high
        assert bootstrap(METRICS[name], p, draws=Draws(count=60, seed=4)) != once


def test_all_draws_at_once_are_the_draws_one_by_one():
    p, draws = said(), Draws(count=50)
    fast = there(bootstrap(Mean(lambda q: q.correct), p, draws=draws))
    slow = there(bootstrap(lambda q: float(q.correct.mean()), p, draws=draws))
    assert fast.low == pytest.approx(slow.low, abs=1e-12)
    assert fast.high == pytest.approx(slow.high, abs=1e-12)


def test_the_interval_of_a_mean_is_that_of_the_central_limit():
    p = said(5000)
    found = there(bootstrap(METRICS["accuracy"], p, draws=Draws(count=2000)))
    deviation = np.sqrt(found.value * (1 - found.value) / 5000)
    assert (found.high - found.low) / deviation == pytest.approx(2 * 1.96, rel=0.06)


def test_inside_and_outside_are_redrawn_apart():
    inside, outside = said(200), said(150, 1, target=np.full(150, -1))
    found = there(bootstrap(detection("auroc", "max_p"), inside, outside, draws=Draws(count=100)))
    assert found.value == detection("auroc", "max_p")(inside, outside)
    assert found.low < found.value < found.high
    assert bootstrap(detection("auroc", "energy"), inside, outside) is None


def test_many_statistics_together_have_the_intervals_they_have_alone():
    p, outside, draws = said(100), said(80, 1, target=np.full(80, -1)), Draws(count=30)
    assert bootstrap_all(METRICS, p, draws=draws) == {
        name: bootstrap(metric, p, draws=draws) for name, metric in METRICS.items()
    }
    assert bootstrap_ranking(DETECTION, p, outside, SCORES["entropy"], draws) == {
        name: bootstrap(detection(name, "entropy"), p, outside, draws=draws) for name in DETECTION
    }


def test_a_paired_difference_is_narrower_than_two_intervals():
    a = said(1000)
    worse = np.where(np.arange(1000) % 10 == 0, (a.prediction + 1) % 3, a.prediction)
    b = Predictions(**(vars(a) | {"prediction": worse}))
    draws = Draws(count=300)
    paired = there(paired_difference(METRICS["accuracy"], (a,), (b,), draws))
    alone = there(bootstrap(METRICS["accuracy"], a, draws=draws))
    before, after = (there(METRICS["accuracy"](p)) for p in (a, b))
    assert paired.value == after - before
    assert paired.high - paired.low < alone.high - alone.low
    same = there(paired_difference(METRICS["ece"], (a,), (a,), draws))
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_paired_difference_needs_the_same_examples():
    a = said(20)
    with pytest.raises(BadInput, match="same examples"):
        paired_difference(METRICS["accuracy"], (a,), (a.take(np.arange(20)[::-1]),))
    with pytest.raises(BadInput, match="no predictions to redraw"):
        bootstrap(lambda p: 0.0, a.take(slice(0, 0)))
