"""Every part of a promise at its limit: one example more or less decides, counted by hand."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from ova.errors import BadInput
from ova.posthoc.certificates import starts
from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.predictions import Predictions

WITHIN = 0.05  # delta of all promises here


def ranked(n: int, wrong: Sequence[int] = ()) -> tuple[np.ndarray, np.ndarray]:
    """Confidences n, n - 1, ..., 1 of ranks 1, 2, ..., n; the answers of the ranks named are wrong."""
    right = np.ones(n, bool)
    right[np.array(wrong, int) - 1] = False
    return np.arange(n, 0, -1.0), right


def answered(found: Threshold) -> int | None:
    """How many of the examples are answered; None where nothing is promised."""
    assert found.promised == (found.value < math.inf)
    return round(found.answered * found.n) if found.promised else None


# n, ranks of the wrong answers, answered: P(right) >= 0.9 among them. Without errors it takes 29,
# with one 46, with two 61, with three 76; at 0.9 delta 30, 47, 63, 77; at 0.1 delta 51, 72, 90, 106.
ACCURACY: dict[str, tuple[int, list[int], int | None]] = {
    "no error": (29, [], 29),
    "one too few": (28, [], None),
    "an error at the end": (46, [46], 46),
    "an error too early": (45, [45], 44),
    "an error in the walk": (46, [40], 39),
    "an error before its first count": (46, [29], None),
    "one error in the first 46": (178, [46], 178),
    "a second before 61": (178, [1, 60], 59),
    "a second at 61": (178, [1, 61], 178),
    "a third before 76": (178, [1, 61, 75], 74),
    "two in the first 46": (178, [1, 46], None),
    "the second walk saves it": (180, [1, 47], 180),
    "the second walk, to its third error": (180, [1, 47, 105], 104),
    "the second walk, third error in time": (180, [1, 47, 106], 180),
    "the second walk fails at its start": (180, [1, 47, 90], None),
    "the first of two walks, to its third error": (180, [47, 63, 76], 75),
    "the first of two walks, third error in time": (180, [47, 63, 77], 180),
}


@pytest.mark.parametrize(("n", "wrong", "expected"), ACCURACY.values(), ids=ACCURACY)
def test_accuracy(n: int, wrong: list[int], expected: int | None) -> None:
    found = fit_threshold(ranked(n, wrong), 0.9)
    assert answered(found) == expected
    if expected is not None:
        assert found.value == (n - expected if expected < n else -math.inf)  # the next confidence
        errors = sum(rank <= expected for rank in wrong)
        assert binom.cdf(errors, expected, 0.1) <= WITHIN
        assert found.accuracy == pytest.approx(1 - errors / expected)


def test_no_promise_rests_on_a_part_of_a_tie() -> None:
    """29 right ones are enough, but these 20 and some of 40 that are equal are no threshold's."""
    c, draw = np.array([10.0] * 20 + [5.0] * 40), np.random.default_rng(0)
    for _ in range(20):
        right = np.ones(60, bool)
        right[draw.choice(40, 2, replace=False) + 20] = False  # one too many for all 60
        assert not fit_threshold((c, right), 0.9).promised


# Where the walks start: with one error forgiven if that takes half of the examples at most, with more
# if an eighth allows it; the second near one half, if two errors are forgiven there.
@pytest.mark.parametrize(
    ("n", "first"),
    [(28, []), (29, [29]), (91, [29]), (92, [46]), (179, [46]), (180, [47, 90]), (503, [47, 249]),
     (504, [63, 249]), (615, [63, 301]), (616, [77, 301])],
)  # fmt: skip
def test_the_walks_start_where_enough_errors_are_forgiven(n: int, first: list[int]) -> None:
    assert [count for count, _ in starts(n, 0.9, WITHIN)] == first


# P(Bin(n, 0.8) <= k - 1) >= 0.95 first at k; the k-th confidence and all above it are answered.
@pytest.mark.parametrize(("n", "expected"), [(21, 21), (22, 21), (50, 45)])
def test_coverage(n: int, expected: int) -> None:
    found = fit_threshold(ranked(n), coverage=0.8)
    assert answered(found) == expected
    assert found.value == (n - expected if expected < n else -math.inf)
    assert (found.accuracy, found.outside, found.leak) == (1, 0, None)


def test_coverage_with_ties_answers_the_whole_tie() -> None:
    c = np.array([9.0] * 40 + [5.0] * 8 + [1.0] * 2)  # the 45th of 50 is one of eight
    found = fit_threshold((c, np.ones(50)), coverage=0.8)
    assert (found.value, answered(found)) == (1.0, 48)


def test_a_tail_of_exactly_delta_is_enough() -> None:
    """0.5 ** 4 = 1 - 0.9375, and P(Bin(4, 0.5) <= 2) = 0.6875, without any rounding."""
    assert answered(fit_threshold(ranked(4), 0.5, 0.9375)) == 4
    assert answered(fit_threshold(ranked(4), coverage=0.5, certainty=0.6875)) == 3
    outside = np.arange(4, 0, -1.0)
    assert fit_threshold(ranked(4), leak=0.5, certainty=0.9375, outside=outside).value == 4


# Examples of no class: P(Bin(n, 0.05) <= m) <= 0.05, so m of them may be above the threshold.
@pytest.mark.parametrize(("n", "above"), [(58, None), (59, 0), (92, 0), (93, 1)])
def test_leak(n: int, above: int | None) -> None:
    found = fit_threshold(ranked(5), leak=0.05, outside=np.arange(n, 0, -1.0))
    assert found.promised == (above is not None)
    assert found.outside == n
    if above is not None:
        assert found.value == n - above
        assert found.leak == above / n


# Each of several promises has its share of delta: at half of it 0.9 takes 36 right answers, not 29,
# at a third 39.
TOGETHER: dict[str, tuple[int, int, dict[str, Any], str]] = {
    "accuracy, coverage": (36, 0, {"accuracy": 0.9, "coverage": 0.5}, ""),
    "and too few": (35, 0, {"accuracy": 0.9, "coverage": 0.5}, "36 would be needed even if"),
    "accuracy, leak": (37, 36, {"accuracy": 0.9, "leak": 0.1}, ""),
    "or too few": (35, 36, {"accuracy": 0.9, "leak": 0.1}, "36 would be needed even if"),
    "or too few outside": (37, 35, {"accuracy": 0.9, "leak": 0.1}, "of no class, 36 would be needed"),
    "all": (40, 39, {"accuracy": 0.9, "leak": 0.1, "coverage": 0.5}, ""),
    "all, too few": (38, 39, {"accuracy": 0.9, "leak": 0.1, "coverage": 0.5}, "39 would be needed"),
    "all, too few outside": (
        40, 38, {"accuracy": 0.9, "leak": 0.1, "coverage": 0.5}, "of no class, 39 would be needed"),
}  # fmt: skip


@pytest.mark.parametrize(("n", "outside", "asked", "why_not"), TOGETHER.values(), ids=TOGETHER)
def test_several_promises_share_delta(
    n: int, outside: int, asked: dict[str, Any], why_not: str
) -> None:
    o = np.full(outside, 0.5)  # below all of the others
    found = fit_threshold(ranked(n), outside=o, **asked)
    assert found.promised == (not why_not)
    assert why_not in found.why_not


def test_coverage_beside_a_leak_has_half_of_delta() -> None:
    """P(Bin(n, 0.8) <= n - 2) >= 0.975 from n = 26 on; 0.95 would do from 22."""
    for n, value in ((25, None), (26, 1.0)):
        found = fit_threshold(ranked(n), coverage=0.8, leak=0.1, outside=np.full(36, 0.5))
        assert found.value == (math.inf if value is None else value)
        assert ("conflict" in found.why_not) == (value is None)


def test_all_parts_at_once_take_the_lowest_value_that_keeps_them() -> None:
    """Of 100 answers none is wrong; one in 60 outside examples may be above the threshold."""
    outside = np.array([50.0, *np.full(59, 7.0)])
    found = fit_threshold(ranked(100), 0.9, leak=0.1, outside=outside)
    assert binom.cdf(1, 60, 0.1) <= WITHIN / 2 < binom.cdf(2, 60, 0.1)
    assert (found.value, found.leak) == (7.0, 1 / 60)
    both = fit_threshold(ranked(100), 0.9, leak=0.1, coverage=0.97, outside=outside)
    assert not both.promised  # 93 are above 7, and 97 would have to be answered


def test_another_certainty_is_another_delta() -> None:
    assert fit_threshold(ranked(22), 0.9, 0.9).promised  # 0.9 ** 22 <= 0.1 < 0.9 ** 21
    assert not fit_threshold(ranked(21), 0.9, 0.9).promised
    assert fit_threshold(ranked(44), 0.9, 0.99).promised
    assert not fit_threshold(ranked(43), 0.9, 0.99).promised


# Groups


def test_rows_of_a_group_count_as_one() -> None:
    """29 copies of one right answer prove nothing, 29 groups of ten what 29 rows do."""
    c, right = ranked(29)
    ten = (np.repeat(c, 10), np.repeat(right, 10))
    group = np.repeat(np.arange(29), 10)
    found = fit_threshold(ten, 0.9, groups=group)
    assert found == fit_threshold((c, right), 0.9)
    assert found.n == 29
    few = fit_threshold(ten, 0.9, groups=np.minimum(group, 27))
    assert not few.promised
    assert few.n == 28
    assert "with 28 examples, 29 would be needed" in few.why_not
    assert fit_threshold(ten, 0.9).n == 290  # without groups all rows are taken as independent


def test_a_group_with_two_labels_is_right_as_often_as_its_rows_are() -> None:
    """The row that stands for its group is drawn by lot, not by its place and not by its answer."""
    n = 4000
    right = np.tile([True, False, False, False], n)
    found = fit_threshold((np.ones(4 * n), right), coverage=0.5, groups=np.repeat(range(n), 4))
    assert found.n == n
    assert found.accuracy == pytest.approx(0.25, abs=0.03)  # 4.4 standard deviations


def test_examples_of_none_are_counted_and_said() -> None:
    c = np.linspace(0.5, 1, 60)
    said = Predictions(
        id=np.arange(60),
        target=np.where(np.arange(60) < 2, -1, 0).astype(np.int32),
        prediction=np.zeros(60, np.int32),
        confidence=c,
        classes=2,
        normalised=False,
    )
    found = fit_threshold(said, 0.9)
    assert found.none == 2
    assert "(60 examples, 2 of them of none of the classes, " in str(found)
    halves = fit_threshold(said, coverage=0.5, groups=np.arange(60) // 2)
    assert (halves.n, halves.none) == (30, 1)
    assert fit_threshold((c, said.correct), 0.9).none == 0
    old = {k: v for k, v in found.to_json().items() if k != "none"}  # as version 0.1 wrote it
    assert Threshold.from_json(old).none == 0
    assert Threshold.from_json(found.to_json()) == found


def test_groups_that_do_not_fit_are_named() -> None:
    with pytest.raises(BadInput, match="29 examples but 2 groups; there must be one each"):
        fit_threshold(ranked(29), groups=["a", "b"])
    with pytest.raises(BadInput, match="row 1 has no group"):
        fit_threshold(ranked(2), groups=["a", None])


def test_a_promise_says_what_it_says() -> None:
    assert not Promise().says
    assert all(Promise(**{part: 0.5}).says for part in ("accuracy", "coverage", "leak"))
    assert str(Promise(0.9, 0.8, 0.05, 0.99)) == (
        "accuracy >= 0.9, coverage >= 0.8, leak <= 0.05 with certainty 0.99"
    )
