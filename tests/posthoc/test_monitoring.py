"""The monitor against slow oracles: p-values, bets that are fair, bounds that hold, alarms that are rare."""

from collections.abc import Callable
from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import beta, binom, kstest

from ova.errors import BadInput
from ova.posthoc.monitoring import Monitor
from ova.posthoc.monitoring.exchangeable import BETS, SHAPES, Exchangeability
from ova.posthoc.monitoring.interval import bounds, log_wealth
from ova.posthoc.monitoring.kept import Kept
from ova.posthoc.monitoring.ranks import Ranks
from ova.posthoc.monitoring.wealth import asleep, bet

numbers = st.lists(st.integers(0, 5), max_size=12)


@settings(max_examples=100, deadline=None)
@given(numbers, st.lists(numbers, max_size=4), st.integers(0, 99))
def test_p_values_are_those_in_plain_words_however_the_stream_is_cut(
    held: list[int], pieces: list[list[int]], seed: int
) -> None:
    lots = np.random.default_rng(seed).random(sum(map(len, pieces)))
    ranks, found, at = Ranks(np.array(held, float)), [], 0
    for piece in pieces:
        found += ranks.p_values(np.array(piece, float), lots[at : at + len(piece)]).tolist()
        at += len(piece)
    seen = [*held]
    for s, lot, p in zip((s for piece in pieces for s in piece), lots, found, strict=True):
        less, same = sum(x < s for x in seen), sum(x == s for x in seen)
        assert p == pytest.approx((less + lot * (same + 1)) / (len(seen) + 1), abs=1e-15)
        seen.append(s)


def test_p_values_of_exchangeable_rows_are_uniform_and_independent_with_ties() -> None:
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(1500):
        s = rng.permutation([1, 1, 2, 3, 3, 3]).astype(float)  # exchangeable, not independent
        drawn.append(Ranks(s[:3]).p_values(s[3:], rng.random(3)))
    p = np.array(drawn)
    assert all(kstest(column, "uniform").pvalue > 1e-4 for column in p.T)
    assert np.abs(np.corrcoef(p.T) - np.eye(3)).max() < 0.1


def test_every_bet_on_p_values_is_fair() -> None:
    for shape, how in zip(SHAPES, BETS, strict=True):
        at = np.array([0.01, 0.3, 0.99])
        density = np.exp(how[0] * np.log(at) + how[1] * np.log1p(-at) + how[2])
        np.testing.assert_allclose(density, beta.pdf(at, *shape), rtol=1e-12)
        whole, _ = quad(lambda x, a=shape: beta.pdf(x, *a), 0, 1)
        assert whole == pytest.approx(1, abs=1e-6)


def one(p: float) -> Callable[..., np.ndarray]:
    return lambda *_: np.array([p])


def test_no_capital_comes_from_nowhere_and_histograms_are_fair() -> None:
    capital = asleep(3)
    for t in range(50):
        assert bet(capital, float(t), np.ones(3)) == pytest.approx(1, abs=1e-12)
        assert capital.sum() == pytest.approx(1, abs=1e-12)
        assert (capital[1:] > 0).all()
    # After some rows the mean of the next factor over p is one, whatever the histograms have learnt.
    rng, factors = np.random.default_rng(0), []
    s = rng.normal(-1, size=300)
    for place in np.linspace(0.0005, 0.9995, 1000):
        watched = Exchangeability(np.arange(20.0), [0])
        before = watched.update(s)[0][-1]
        watched.ranks.p_values = one(place)  # type: ignore[method-assign]
        factors.append(np.exp(watched.update(np.zeros(1))[0][0] - before))
    assert np.mean(factors) == pytest.approx(1, abs=0.01)


def test_a_promise_at_its_edge_is_watched_fairly_exactly() -> None:
    """All outcomes of ten rows that are bad with the promised probability, then with less."""
    share, n, level = 0.8, 10, 0.3
    for bad, fair in ((1 - share, True), (0.1, False)):
        mean, alarmed = 0.0, 0.0
        for outcome in product((False, True), repeat=n):
            chance = bad ** (n - sum(outcome)) * (1 - bad) ** sum(outcome)
            path, _ = Kept(share).update(np.array(outcome))
            mean += chance * np.exp(path[-1])
            alarmed += chance * bool((path >= log(1 / level)).any())
        assert (mean == pytest.approx(1, abs=1e-9)) if fair else mean < 1 - 1e-6
        assert alarmed <= level


def test_bounds_are_the_edges_of_what_is_not_ruled_out() -> None:
    good = np.random.default_rng(0).random(200) < 0.7
    low, high = bounds(good, np.array([1, 7, 200]), 0.9)
    grid = np.linspace(0, 1, 20001)
    for n, a, b in zip((1, 7, 200), low, high, strict=True):
        hits = np.full(len(grid), good[:n].sum())
        left = grid[log_wealth(grid, hits, np.full(len(grid), n)) < log(10)]
        assert a == pytest.approx(left.min(), abs=1e-4)
        assert b == pytest.approx(left.max(), abs=1e-4)
        assert a <= good[:n].mean() <= b


def test_bounds_hold_for_the_mean_of_chances_that_change_exactly() -> None:
    """All outcomes of ten rows whose chances differ: is the mean of the chances ever ruled out?"""
    chances = np.array([0.9, 0.1, 0.8, 0.5, 0.2, 0.9, 0.9, 0.3, 0.6, 0.7])
    at, outcomes = np.arange(1, 11), np.array([*product((0, 1), repeat=10)])
    means, hits = np.cumsum(chances) / at, np.cumsum(outcomes, axis=1)
    n = np.tile(at, len(outcomes))
    logs = log_wealth(np.tile(means, len(outcomes)), hits.ravel(), n).reshape(hits.shape)
    chance = np.where(outcomes, chances, 1 - chances).prod(axis=1)
    assert chance.sum() == pytest.approx(1)
    assert chance @ np.exp(logs[:, -1]) <= 1
    for certainty in (0.5, 0.8, 0.95):
        wrong = (logs >= log(1 / (1 - certainty))).any(axis=1)
        assert chance @ wrong <= 1 - certainty


def stream(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores with ties, best guesses that go with them, and whether answers are right."""
    k = rng.integers(3, size=n)
    return np.round(rng.normal(k, 1), 1), k, rng.random(n) < 0.9


def test_without_a_change_alarms_are_as_rare_as_promised() -> None:
    times, rate, alarms = 300, 0.2, 0
    for seed in range(times):
        rng = np.random.default_rng(seed)
        (held, k, _), (s, guess, right) = stream(rng, 60), stream(rng, 500)
        monitor = Monitor(held, k, promised={"accuracy": 0.9}, false_alarms=rate, seed=seed)
        monitor.update(s, guess)
        monitor.outcomes("accuracy", right, np.arange(500))
        alarms += bool(monitor.alarms)
    assert alarms <= binom.ppf(1 - 1e-6, times, rate)
    assert sum(found.level for found in monitor.findings) == pytest.approx(rate)


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("scores", {"scores"}),
        ("one", {"scores of 'b'"}),
        ("classes", {"classes"}),
        ("accuracy", {"accuracy"}),
    ],
)
def test_a_large_change_is_found_by_its_name_and_its_row(what: str, names: set[str]) -> None:
    rng = np.random.default_rng(1)
    (held, k, _), (s, guess, right) = stream(rng, 1000), stream(rng, 4000)
    after = np.arange(4000) >= 2000
    if what == "scores":
        s[after] -= 2
    elif what == "one":
        s[after & (guess == 1)] += 2
    elif what == "classes":
        moved = after & (guess == 2) & (rng.random(4000) < 0.8)
        s[moved], guess[moved] = s[moved] - 2, 0
    else:
        right[after] = rng.random(2000) < 0.5
    monitor = Monitor(held, k, names=["a", "b", "c"], promised={"accuracy": 0.85})
    monitor.update(s, guess)
    monitor.outcomes("accuracy", right, np.arange(4000))
    found = {each.name: each for each in monitor.alarms}
    assert names <= set(found)
    assert ("accuracy" in found) == (what == "accuracy")
    for name in names:
        alarm, since = found[name].alarm, found[name].since
        assert alarm is not None
        assert since is not None
        assert 2000 <= alarm < 2600
        assert abs(since - 2000) < 150
        assert name in str(found[name])


def test_pieces_change_nothing() -> None:
    rng = np.random.default_rng(2)
    (held, k, _), (s, guess, right) = stream(rng, 50), stream(rng, 400)
    whole = Monitor(held, k, promised={"accuracy": 0.9}, false_alarms=0.5)
    whole.update(s, guess)
    whole.outcomes("accuracy", right, np.arange(400))
    cut = Monitor(held, k, promised={"accuracy": 0.9}, false_alarms=0.5)
    for part in np.split(np.arange(400), [1, 2, 10, 10, 200]):
        cut.update(s[part], guess[part])
        cut.outcomes("accuracy", right[part], part)
    for one, other in zip(whole.watched, cut.watched, strict=True):
        rows, path = one.wealth
        assert (rows == other.wealth[0]).all()
        np.testing.assert_allclose(path, other.wealth[1], atol=1e-9)
        assert one.finding.alarm == other.finding.alarm


def likeliest(logs: np.ndarray) -> int:
    """Slowly: the latest first row of a last part of the stream for which one of the bets did best."""
    sums = np.cumsum(logs[::-1], axis=0).max(axis=1)
    return len(logs) - 1 - int(sums.argmax())


def test_since_is_the_first_row_of_the_best_streak_of_a_bet() -> None:
    rng = np.random.default_rng(4)
    s = np.concatenate([rng.normal(size=60), rng.normal(-2, size=20), rng.normal(size=20)])
    held, rows = rng.normal(size=50), np.arange(len(s)) * 3
    p = Ranks(held).p_values(s, np.random.default_rng([0]).random(len(s)))
    bettor, cuts = Exchangeability(held, [0]), [1, 30]
    pieces = zip(np.split(s, cuts), np.split(rows, cuts), strict=True)
    since = np.concatenate([bettor.update(*piece)[1] for piece in pieces])
    logs = BETS[:, 0] * np.log(p)[:, None] + BETS[:, 1] * np.log1p(-p)[:, None] + BETS[:, 2]
    assert since.tolist() == [3 * likeliest(logs[: i + 1]) for i in range(len(s))]
    kept, good = Kept(0.8), rng.random(200) < np.where(np.arange(200) < 100, 0.9, 0.5)
    _, since = kept.update(good)
    logs = np.log(kept.gains)[(~good).astype(int)]
    assert since.tolist() == [likeliest(logs[: i + 1]) for i in range(len(good))]


def test_what_is_forgotten_changes_no_finding_and_memory_stays_small() -> None:
    rng = np.random.default_rng(5)
    (held, k, _), (s, guess, right) = stream(rng, 200), stream(rng, 3000)
    s[1500:] -= 1
    whole, forgetful = (Monitor(held, k, promised={"accuracy": 0.9}) for _ in range(2))
    for part in np.split(np.arange(3000), 30):
        for monitor in (whole, forgetful):
            monitor.update(s[part], guess[part])
            monitor.outcomes("accuracy", right[part], part)
        forgetful.forget()
    assert forgetful.alarms
    assert forgetful.findings == whole.findings
    assert all(len(each.wealth[0]) == 0 for each in forgetful.watched)
    different = len({*held.tolist(), *s.tolist()})
    for each in (forgetful.scores, *forgetful.within):
        assert isinstance(each.bettor, Exchangeability)
        assert sum(len(values) for values, _ in each.bettor.ranks.runs) < 3 * different


def test_an_alarm_stays() -> None:
    monitor = Monitor(np.arange(500.0), promised={"accuracy": 0.9})
    monitor.outcomes("accuracy", np.zeros(20), np.arange(20))
    first = monitor.alarms
    monitor.outcomes("accuracy", np.ones(3000), np.arange(20, 3020))
    again = monitor.alarms
    assert [found.alarm for found in again] == [found.alarm for found in first]
    assert monitor.promised["accuracy"].wealth[1][-1] < log(200)


def test_late_changes_cost_a_logarithm() -> None:
    """After twenty times as many rows of nothing, at most the same bets must be paid for late."""
    rng, took = np.random.default_rng(3), []
    for quiet in (500, 10_000):
        watched = Exchangeability(rng.normal(size=2000), [0])
        watched.update(rng.normal(size=quiet))
        path, _ = watched.update(rng.normal(-1, size=1000))
        took.append(int((path < log(1000)).argmin()))
    assert 0 < took[0] < 100
    assert 0 < took[1] < 150


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Monitor([]), "no calibration scores"),
        (lambda: Monitor([1.0], false_alarms=1), "false_alarms must lie strictly between"),
        (lambda: Monitor([1.0, float("nan")]), "1 of 2 values of the score are NaN"),
        (lambda: Monitor([1.0], promised={"accuracy": 1.0}), "accuracy must be promised strictly"),
        (lambda: Monitor([1.0], [0, 1]), "1 scores but 2 best guesses"),
        (lambda: Monitor([1.0], [0.5]), "must be the number of a class"),
        (lambda: Monitor([1.0], [0]).update([1.0]), "give the best guess of each row"),
        (lambda: Monitor([1.0], [0]).update([1.0], [1]), "must be the number of a class"),
        (lambda: Monitor([1.0]).outcomes("accuracy", [1], [0]), "'accuracy' is not promised"),
    ],
)
def test_what_cannot_be_watched_is_told(make, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        make()


def test_the_alarm_comes_no_later_than_the_wealth_says() -> None:
    watched = Monitor(np.arange(10.0), false_alarms=0.9)
    watched.update(np.full(5, -1.0))
    finding = watched.findings[0]
    rows, path = watched.scores.wealth
    rich = np.flatnonzero(path >= log(1 / 0.9))
    assert finding.alarm == (int(rows[rich[0]]) if len(rich) else None)
    assert finding.most == max(0.0, path.max())
