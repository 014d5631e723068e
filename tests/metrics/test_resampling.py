"""Bootstrap intervals: seeded, the same vectorised or one by one, and as wide as theory says."""

from typing import Any

import numpy as np
import pytest
from scipy import stats

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
from ova.metrics.ranking import rank
from ova.metrics.resampling import bootstrap_all, bootstrap_ranking
from ova.predictions import Predictions
from ova.scores import scores_of


def said(n=400, seed=0, target=None):
    r = np.random.default_rng(seed)
    p = r.dirichlet(np.ones(3), n)
    y = np.array([r.choice(3, p=row) for row in p]) if target is None else target
    return Predictions.from_probs(p, y, normalised=True, keep_probs=True)


REDRAWN = [name for name, metric in METRICS.items() if metric.redrawn]


@pytest.mark.parametrize("name", REDRAWN)
def test_every_redrawn_metric_has_an_interval_around_it_that_a_seed_repeats(name):
    p, draws = said(), Draws(count=60, seed=3)
    once, again = (bootstrap(METRICS[name], p, draws=draws) for _ in range(2))
    assert once == again
    if once is None:
        assert METRICS[name](p) is None
    else:
        assert once.value == METRICS[name](p)
        assert there(once.low) < there(once.high)
        assert bootstrap(METRICS[name], p, draws=Draws(count=60, seed=4)) != once


CALIBRATION = ["ece", "ece_equal_mass", "ece_classwise", "mce", "rms_calibration_error"]


def test_calibration_errors_are_not_redrawn():
    assert [name for name in METRICS if name not in REDRAWN] == CALIBRATION
    p = said(300)
    for name in CALIBRATION:
        found = there(bootstrap(METRICS[name], p))
        assert found.value == METRICS[name](p)
        if name in ("ece", "ece_equal_mass"):
            assert 0 <= there(found.low) <= found.value <= there(found.high)
        else:
            assert (found.low, found.high) == (None, None)
            assert there(paired_difference(METRICS[name], (p,), (p,))).low is None


def answers(r, n, gap, shape=(3.0, 0.4)):
    """Confidences, and answers that are right with that chance less a gap."""
    confidence = r.beta(*shape, n)
    wrong = (r.random(n) >= confidence - gap).astype(np.int32)
    head: dict[str, Any] = {"id": np.arange(n), "target": np.zeros(n, np.int32), "classes": 2}
    head["normalised"] = True
    return Predictions(prediction=wrong, confidence=confidence, **head)


@pytest.mark.parametrize("n", [300, 2000])
@pytest.mark.parametrize("gap", [0, 0.03, 0.2])
def test_intervals_of_the_ece_hold_the_truth(n, gap):
    r = np.random.default_rng(n)
    truth = np.minimum(r.beta(3, 0.4, 10**6), gap).mean()  # no answer is right less than never
    found = [there(bootstrap(METRICS["ece"], answers(r, n, gap))) for _ in range(200)]
    held = [there(i.low) <= truth <= there(i.high) for i in found]
    assert np.mean(held) >= 0.95
    assert all(there(i.low) <= i.value <= there(i.high) for i in found)


def test_differences_of_the_ece_hold_the_truth():
    """Both are calibrated; the blunt one shows a larger error, and did so in nearly every interval."""
    r = np.random.default_rng(0)
    held, larger = [], []
    for _ in range(100):
        sharp, blunt = answers(r, 1000, 0, (9, 0.6)), answers(r, 1000, 0, (3, 2))
        found = there(paired_difference(METRICS["ece"], (sharp,), (blunt,)))
        held.append(there(found.low) <= 0 <= there(found.high))
        larger.append(found.value > 0)
    assert np.mean(larger) > 0.95
    assert np.mean(held) >= 0.95


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
    assert (there(found.high) - there(found.low)) / deviation == pytest.approx(2 * 1.96, rel=0.06)


def test_inside_and_outside_are_redrawn_apart():
    inside, outside = said(200), said(150, 1, target=np.full(150, -1))
    found = there(bootstrap(detection("auroc", "max_p"), inside, outside, draws=Draws(count=100)))
    assert found.value == detection("auroc", "max_p")(inside, outside)
    assert there(found.low) < found.value < there(found.high)
    assert bootstrap(detection("auroc", "energy"), inside, outside) is None


def test_many_statistics_together_have_the_intervals_they_have_alone():
    p, outside, draws = said(100), said(80, 1, target=np.full(80, -1)), Draws(count=30)
    assert bootstrap_all(METRICS, p, draws=draws) == {
        name: bootstrap(metric, p, draws=draws) for name, metric in METRICS.items()
    }
    a, b = (scores_of(x)["entropy"] for x in (p, outside))
    sizes = (len(p), len(outside))
    assert bootstrap_ranking(DETECTION, lambda i, j: rank(a[i], b[j]), sizes, draws) == {
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
    assert there(paired.high) - there(paired.low) < there(alone.high) - there(alone.low)
    same = there(paired_difference(METRICS["accuracy"], (a,), (a,), draws))
    assert (same.value, same.low, same.high) == (0, 0, 0)


def test_a_paired_difference_needs_the_same_examples():
    a = said(20)
    with pytest.raises(BadInput, match="same examples"):
        paired_difference(METRICS["accuracy"], (a,), (a.take(np.arange(20)[::-1]),))
    with pytest.raises(BadInput, match="no predictions to redraw"):
        bootstrap(lambda p: 0.0, a.take(slice(0, 0)))


def always_sure(n, wrong):
    """A network that always says 1, and is wrong so often."""
    y = (np.arange(n) < wrong).astype(int)
    return Predictions.from_probs(np.tile([1.0, 0.0], (n, 1)), y, normalised=True)


def test_no_error_among_few_examples_is_no_proof_of_none():
    """As if two more examples had been off by one, and one on top: (1.96 sqrt(2) + 1) / n."""
    n = 50
    found = there(bootstrap(METRICS["ece"], always_sure(n, 0)))
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx((1.96 * np.sqrt(2) + 1) / n, rel=1e-3)


def test_few_errors_of_a_network_that_is_always_sure_hold_their_rate():
    """Exact: so many errors are binomial. Without room for one more only .932 held, at six of n."""
    n, k = 1000, np.arange(60)
    ends = np.array(
        [(i.low, i.high) for w in k if (i := bootstrap(METRICS["ece"], always_sure(n, w)))]
    )
    for rate in np.linspace(0.1, 30, 300) / n:
        holds = (ends[:, 0] <= rate) & (rate <= ends[:, 1])
        assert stats.binom.pmf(k[holds], n, rate).sum() >= 0.95
