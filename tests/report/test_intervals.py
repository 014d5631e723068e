"""Intervals and verdicts: Student's over seeds, and clear only with other seeds and other examples."""

import numpy as np
import pytest
from scipy import stats

from narrowing import there
from ova.metrics.halves import on_halves
from ova.predictions import SetName
from ova.report import comparison, intervals, summary
from ova.report.intervals import BOTH, LEVEL, Verdict
from ova.training.run_folder import Run

TEST = SetName("test")


def rows_of(values, first=0):
    return [{"seed": first + i, "value": v} for i, v in enumerate(values)]


def test_intervals_are_student_s():
    values = [0.91, 0.93, 0.90, 0.95]
    found = intervals.over_seeds(values)
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-12)


def test_differences_are_paired_over_common_seeds_else_welch_s():
    a, b = [0.9, 0.95, 0.93], [0.85, 0.91, 0.9]
    paired = there(intervals.difference(rows_of(a), rows_of(b)))
    expected = stats.ttest_rel(a, b).confidence_interval()
    shown = paired.at()
    assert (shown.low, shown.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert (paired.how, paired.examples) == ("paired over 3 seeds", None)
    apart = there(intervals.difference(rows_of(a), rows_of(b, first=10)))
    expected = stats.ttest_ind(a, b, equal_var=False).confidence_interval()
    shown = apart.at()
    assert (shown.low, shown.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
    assert apart.how == "3 against 3 seeds"
    assert intervals.difference(rows_of([0.9]), rows_of([0.8])) is None
    assert intervals.difference(rows_of(a), rows_of([0.8])) is None


def test_an_interval_of_a_share_stays_between_0_and_1():
    found = intervals.estimate([{"value": 0.0}, {"value": 0.1}])
    assert found.low == 0.0
    assert there(found.high) <= 1.0


def test_a_bootstrap_interval_serves_where_there_is_one_seed():
    row = {"value": 0.5, "low": 0.4, "high": 0.6}
    assert intervals.estimate([row]) == intervals.Estimate(0.5, 0.4, 0.6, 1, "bootstrap")
    assert intervals.estimate([{"value": 0.5}]).how == "one seed"


# Verdicts


def answered(r, gains, seeds, n=500, luck=0.1):
    """Rows of models that share what is hard: `gains` make some right more often than others.

    Of what they do not share, all seeds of a model share most, so that seeds tell little.
    """
    hard, own = r.standard_normal(n), r.standard_normal((len(gains), 1, n))
    each = r.standard_normal((len(gains), seeds, n))
    z = np.sqrt(0.5) * hard + np.sqrt(0.5 - luck) * own + np.sqrt(luck) * each
    rows = []
    for k, gain in enumerate(gains):
        for seed in range(seeds):
            right = (z[k, seed] < 1 + gain).astype(float)
            values = {"value": right.mean(), "n": n, "halves": on_halves(TEST, right).tolist()}
            rows.append({"label": f"m{k}", "seed": seed, **values})
    return rows


def names(gains):
    return [f"m{k}" for k in range(len(gains))]


def judged(gains, seeds, times, higher=True, **about):
    r = np.random.default_rng(seeds)
    made = (answered(r, gains, seeds, **about) for _ in range(times))
    return [there(intervals.verdict(rows, names(gains), higher)) for rows in made]


@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("luck", [0.02, 0.3])
def test_models_of_the_same_truth_are_seldom_told_apart(seeds, luck):
    found = judged((0, 0), seeds, 300, luck=luck)
    assert np.mean([not said.tied for said in found]) <= 0.05


@pytest.mark.parametrize("seeds", [3, 5])
def test_of_five_models_of_the_same_truth_hardly_any_is_called_behind(seeds):
    found = judged((0,) * 5, seeds, 200, luck=0.02)
    assert np.mean([len(said.tied) < 4 for said in found]) <= 0.05


def test_a_large_difference_is_seen():
    for seeds, power in ((3, 0.8), (5, 0.95)):
        found = judged((0, -0.5), seeds, 100)
        assert np.mean([said == Verdict("m0", (), BOTH) for said in found]) >= power
    lower = judged((0, -0.5), 5, 20, higher=False)
    assert np.mean([said == Verdict("m1", (), BOTH) for said in lower]) >= 0.95


def test_one_far_behind_is_named_so_beside_two_that_are_level():
    found = judged((0, 0, -1), 5, 50)
    assert np.mean([set(said.tied) | {said.best} == {"m0", "m1"} for said in found]) >= 0.9


def test_nothing_is_clear_with_one_seed_or_without_other_examples():
    rows = answered(np.random.default_rng(0), (1, -1), 3)
    assert there(intervals.verdict(rows, names((0, 0)), True)) == Verdict("m0", (), BOTH)
    single = [row | {"low": row["value"], "high": row["value"]} for row in rows if row["seed"] == 0]
    assert there(intervals.verdict(single, names((0, 0)), True)) == Verdict(
        "m0", ("m1",), "one seed"
    )
    bare = [{k: row[k] for k in ("label", "seed", "value")} for row in rows]
    assert there(intervals.verdict(bare, names((0, 0)), True)) == Verdict("m0", ("m1",), "seeds")
    mixed = [row for row in rows if row["label"] == "m0" or row["seed"] == 0]
    assert there(intervals.verdict(mixed, names((0, 0)), True)).tied == ("m1",)


def test_common_seeds_that_say_the_opposite_are_no_lead():
    """The mean over all seeds may be led by a seed that the other model does not have."""
    many = answered(np.random.default_rng(0), (0, 0.8), 3)
    alone = dict(many[0], seed=7, value=5.0)
    found = there(intervals.verdict([*many, alone], names((0, 0)), True))
    assert (found.best, found.tied) == ("m0", ("m1",))


def test_the_interval_is_student_s_for_seeds_the_normal_one_for_examples_and_wide_for_both():
    seeds = intervals.Spread(0.1, 0.04, 2.0)
    examples = intervals.Spread(0.1, 0.0, 2.0, examples=0.04, count=10**6)
    both = intervals.Spread(0.1, 0.04, 2.0, examples=0.04, count=10**6, excess=(0.01, 0.02))
    half = [there(s.at().high) - 0.1 for s in (seeds, examples)]
    assert half == pytest.approx(
        [0.2 * stats.t.ppf(0.975, 2), 0.2 * stats.norm.ppf(0.975)], rel=1e-5
    )
    shown = both.at()
    assert 0.1 - there(shown.low) == pytest.approx(np.hypot(half[0], half[1]) + 0.01)
    assert there(shown.high) - 0.1 == pytest.approx(np.hypot(half[0], half[1]) + 0.02)
    assert there(both.at(0.99).high) > there(both.at(LEVEL).high)


def test_what_noise_adds_to_calibration_errors_makes_no_difference_clear():
    """Means over seeds of what each may be too high by, taken off on its own side."""

    def some(label, value, excess):
        halves = (value + 0.001 * np.random.default_rng(0).standard_normal(100)).tolist()
        row = {"label": label, "value": value, "n": 1000, "halves": halves}
        return [row | {"seed": seed, "excess": excess + seed / 1000} for seed in range(3)]

    found = there(intervals.difference(some("a", 0.06, 0.03), some("b", 0.04, 0.01)))
    assert found.excess == pytest.approx((0.031, 0.011))
    assert intervals.sign(found) == 0
    assert intervals.sign(intervals.difference(some("a", 0.06, 0.01), some("b", 0.04, 0.03))) == 1
    bare = [{k: v for k, v in row.items() if k != "excess"} for row in some("b", 0.04, 0)]
    assert there(intervals.difference(some("a", 0.06, 0.03), bare)).excess[1] == 0


def test_few_errors_make_no_difference_clear():
    """Five examples that one model gets wrong and the other right: McNemar's exact p is .06."""

    def one(wrong):
        right = np.ones(300)
        right[:wrong] = 0
        row = {"value": right.mean(), "n": 300, "halves": on_halves(TEST, right).tolist()}
        return [{"label": f"{wrong}", "seed": seed, **row} for seed in range(5)]

    assert intervals.sign(intervals.difference(one(0), one(5))) == 0
    assert intervals.sign(intervals.difference(one(0), one(12))) == 1


def run_of(label, seed, value, halves=None, n=500, **more):
    spread = {} if halves is None else {"halves": halves}
    row = {"dataset": "test", "metric": "accuracy", "value": value, "n": n, **spread, **more}
    return Run("e", f"{label}-{seed}", label, seed, measurements=(row,))


def runs_of(gains, seeds, bare=False):
    rows = answered(np.random.default_rng(1), gains, seeds)
    return [
        run_of(f"{row['label']}", row["seed"], row["value"], None if bare else row["halves"])
        for row in rows
    ]


def test_cards_say_what_they_rest_on():
    assert "m0, clearly ahead" in summary.cards(runs_of((1, -1), 3))
    seeds_only = summary.cards(runs_of((1, -1), 3, bare=True))
    assert "m0 has the best mean over seeds, on this test set" in seeds_only
    assert "clearly" not in seeds_only
    overview = summary.overview(runs_of((1, -1), 3, bare=True))
    assert "over seeds, on this test set" in overview
    assert "best mean" in overview
    assert "other test examples" in summary.overview(runs_of((1, -1), 3))


def test_a_card_has_room_for_few_names():
    tied = ("a", "b", "c", "d")
    few, many = (summary.sentence(Verdict("m", tied[:n], BOTH), 9) for n in (3, 4))
    assert few == "m; no clear difference from a, b and c"
    assert many == "m; no clear difference from 4 of the 8 others"


def test_one_seed_with_intervals_over_examples_is_never_clearly_ahead():
    apart = [
        run_of(name, 0, v, low=v - 0.001, high=v + 0.001) for name, v in (("a", 0.9), ("b", 0.1))
    ]
    said = summary.cards(apart)
    assert "a; one seed, so no clear difference can be claimed" in said
    assert "intervals over examples, of one seed" in summary.overview(apart)
    assert "clearly" not in said


def test_a_baseline_is_judged_by_seeds_and_examples_together():
    now, then = runs_of((1,), 3), runs_of((-1,), 3)
    assert ">better<" in comparison.against(now, then)
    assert ">worse<" in comparison.against(then, now)
    assert ">no clear difference<" in comparison.against(now, now)
    bare = comparison.against(runs_of((1,), 3, bare=True), then)
    assert "not tried on other examples" in bare
    assert "paired over 3 seeds, on this test set" in bare
    assert "one seed: no interval" in comparison.against(now[:1], then)
