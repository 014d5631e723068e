"""One promise for every class at once: kept as often as promised, and by the rule in plain words."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom

from ova.errors import BadInput
from ova.posthoc.certificates import accuracy_values, examples_needed, starts
from ova.posthoc.per_class import Thresholds, certified, in_line, pooled
from ova.posthoc.threshold import fit_threshold
from ova.predictions import NONE, Predictions

Part = tuple[np.ndarray, np.ndarray]


def line_in_words(sizes: Sequence[int], a: float, delta: float) -> int:
    """How many of the largest classes could all pass without an error, by trying."""
    most = 0
    for count in range(1, len(sizes) + 1):
        smallest = sorted(sizes, reverse=True)[count - 1]
        if smallest > 0 and binom.pmf(0, smallest, 1 - a) <= delta / count:
            most = count
    return most


def slow_values(part: Part, a: float, entry: float, level: float) -> tuple[set[float], bool]:
    """Certified values by counting, and whether the first walk went to its end; no ties."""
    c, right = part
    order, n, kept, ended = np.argsort(-c), len(c), set(), False
    begun = starts(n, a, entry)
    shares = [1.0] if len(begun) < 2 else [0.9, 0.1]
    for which, ((first, _), share) in enumerate(zip(begun, shares, strict=True)):
        for m in range(first, n + 1):
            if binom.cdf((~right[order[:m]]).sum(), m, 1 - a) > share * level:
                break
            kept.add(float(c[order[m]]) if m < n else -math.inf)
        else:
            ended |= which == 0
    return kept, ended


def slow(parts: Sequence[Part], a: float, delta: float) -> list[float]:
    """The rule of docs/threshold.md in plain words."""
    sizes = [len(c) for c, _ in parts]
    order = sorted(range(len(parts)), key=lambda k: -sizes[k])
    first = line_in_words(sizes, a, delta)
    entry = {}
    for k in order:
        none = binom.pmf(0, sizes[k], 1 - a)
        entry[k] = min(
            delta / count
            for count in range(1, max(1, first) + 1)
            if none <= delta / count or count == 1
        )
    left, found = list(order), dict.fromkeys(order, math.inf)
    while True:
        count = line_in_words([sizes[k] for k in left], a, delta)
        ended = []
        for k in left[:count]:
            kept, whole = slow_values(parts[k], a, entry[k], delta / count)
            found[k] = min(kept, default=math.inf)
            if whole:
                ended.append(k)
        left = [k for k in left if k not in ended]
        if not ended:
            return [found[k] for k in range(len(parts))]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 120), st.floats(0.6, 1)), min_size=1, max_size=6),
    st.floats(0.5, 0.95),
    st.floats(0.02, 0.4),
    st.integers(0, 10**6),
)
def test_the_rule_is_the_one_in_plain_words(
    sizes: list[tuple[int, float]], a: float, delta: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    parts = [(rng.permutation(n) / max(n, 1), rng.random(n) < rate) for n, rate in sizes]
    assert [value for value, _ in certified(parts, a, delta)] == slow(parts, a, delta)


# Of each class how many examples, and their error rate; 0.4 is promised.
WORLDS = {
    "both false by a hair": [(5, 0.401), (4, 0.401)],
    "one true, one false": [(5, 0.0), (5, 0.401)],
    "one so easy that it leaves its share": [(3, 0.05), (6, 0.401)],
    "three, one of them true": [(3, 0.0), (3, 0.41), (3, 0.401)],
    "three false ones, one too rare": [(4, 0.401), (3, 0.5), (1, 0.41)],
}


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("delta", [0.2, 0.45])
def test_no_more_than_delta_of_all_outcomes_break_the_promise_exactly(
    world: str, delta: float
) -> None:
    """Every outcome of a few examples, weighted by its probability: no simulation, no luck."""
    sizes, rates = zip(*WORLDS[world], strict=True)
    error, ends, total = np.repeat(rates, sizes), np.cumsum(sizes)[:-1], 0.0
    for wrong in product((False, True), repeat=sum(sizes)):
        weight = float(np.prod(np.where(wrong, error, 1 - error)))
        if weight > 0:
            right = np.split(~np.array(wrong), ends)
            found = certified([(-np.arange(len(r), dtype=float), r) for r in right], 0.6, delta)
            given_falsely = (
                v < math.inf and e > 0.4 for (v, _), e in zip(found, rates, strict=True)
            )
            total += weight * any(given_falsely)
    assert total <= delta
    assert total > 0 or delta == 0.2  # there are broken promises to count


def world(K: int, bad: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """How often each class is answered, and by how much its accuracy falls short of confidence."""
    share = 1 / np.arange(1, K + 1)
    lack = np.zeros(K)
    lack[:bad] = 0.12
    return share / share.sum(), lack


def drawn(rng: np.random.Generator, n: int, share: np.ndarray, lack: np.ndarray) -> Predictions:
    k = rng.choice(len(share), n, p=share)
    c = rng.beta(6, 0.4, n)
    right = rng.random(n) < c - lack[k] * c
    return Predictions(
        id=np.arange(n),
        target=np.where(right, k, NONE).astype(np.int32),
        prediction=k.astype(np.int32),
        confidence=c,
        classes=len(share),
        normalised=False,
    )


Q = (np.arange(20_000) + 0.5) / 20_000
C = beta(6, 0.4).ppf(Q)


def truth(found: Thresholds, lack: np.ndarray) -> list[float]:
    """The accuracy of each class that is answered, in the population."""
    values = [(k, part.value) for k, part in found.parts.items() if part.value < math.inf]
    above = [(k, C[v < C] if v < C[-1] else C[-1:]) for k, v in values]
    return [float((c * (1 - lack[k])).mean()) for k, c in above]


@pytest.mark.slow
def test_every_class_keeps_its_promise_as_often_as_promised_where_one_for_all_does_not() -> None:
    rng, broken, single = np.random.default_rng(0), 0, 0
    share, lack = world(5, bad=1)
    for _ in range(400):
        said = drawn(rng, 1500, share, lack)
        broken += min(truth(fit_threshold(said, 0.9, per="class"), lack), default=1) < 0.9
        value = fit_threshold(said, 0.9).value
        single += value < 1 and float((C[value < C] * (1 - lack[0])).mean()) < 0.9
    assert broken <= 0.05 * 400
    assert single > 0.3 * 400


def test_a_single_class_has_what_one_threshold_has() -> None:
    rng = np.random.default_rng(1)
    said = drawn(rng, 700, np.array([1.0]), np.array([0.0]))
    one = fit_threshold(said, 0.93)
    assert fit_threshold(said, 0.93, per="class").parts == {0: one}


def test_what_a_class_does_not_need_goes_to_the_others() -> None:
    """0.9 ** 36 <= 0.025 < 0.9 ** 35: at half of delta 35 right ones do not do, at all of it 29 do."""
    easy = (np.linspace(0, 1, 60), np.ones(60, bool))
    rows = (np.linspace(0, 1, 29), np.ones(29, bool))
    assert examples_needed(0, 0.9, 0.05) == 29
    assert [v for v, _ in certified([easy, rows], 0.9, 0.05)] == [-math.inf, -math.inf]
    hard = (np.linspace(0, 1, 60), np.arange(60) > 20)  # its least confident are wrong: not the end
    found = certified([hard, rows], 0.9, 0.05)
    assert -math.inf < found[0][0] < math.inf
    assert found[1] == (
        math.inf,
        "cannot be promised with 29 examples, 36 would be needed even if every answer were right",
    )


def test_the_number_that_is_said_to_be_needed_is_enough() -> None:
    rng = np.random.default_rng(2)
    share, lack = world(8)
    said = drawn(rng, 300, share, lack)
    found = fit_threshold(said, 0.9, per="class")
    short = {k: why for k, why in found.refused.items() if "even if" in why}
    assert short
    key, why = next(iter(short.items()))
    need = int(why.split(", ")[1].split()[0])
    c = [said.confidence[said.prediction == k] for k in range(8)]
    parts = [(c[k], said.correct[said.prediction == k]) for k in range(8)]
    for count, enough in ((need, True), (need - 1, False)):
        parts[int(key)] = (np.linspace(0, 1, count), np.ones(count, bool))
        assert (certified(parts, 0.9, 0.05)[int(key)][0] < math.inf) == enough


def test_rare_classes_are_refused_and_named_or_pooled() -> None:
    rng = np.random.default_rng(3)
    said = drawn(rng, 1000, *world(30))
    apart = fit_threshold(said, 0.8, per="class")
    together = fit_threshold(said, 0.8, per="class", pool=True)
    counts = np.bincount(said.prediction, minlength=30)
    assert set(apart.parts) == set(range(30))
    assert all(apart.parts[k].n == counts[k] for k in range(30))
    rare = list(together.pooled)
    assert rare
    assert counts[rare].max() <= np.delete(counts, rare).min()
    shared = together.parts[rare[0]]
    assert all(together.parts[k] is shared for k in rare)
    assert shared.n == counts[rare].sum()
    assert together.n == apart.n == 1000
    assert together.answered > apart.answered
    assert not apart.answers(np.ones(30), np.arange(30))[list(apart.refused)].any()
    words = [*apart.lines()]
    assert sum(line.startswith("never ") for line in words) == 21
    assert words[-1] == f"never {len(apart.refused) - 20} more classes, which `refused` names"
    assert [*apart.lines([f"bird {k}" for k in range(30)])][1].startswith("never bird ")
    assert "together, being rare" in str(together)


def test_the_share_and_accuracy_of_all_are_those_counted() -> None:
    rng = np.random.default_rng(4)
    said = drawn(rng, 2000, *world(6, bad=2))
    for pool in (False, True):
        found = fit_threshold(said, 0.85, per="class", pool=pool)
        kept = found.answers(said.confidence, said.prediction)
        assert found.answered == pytest.approx(kept.mean())
        assert found.accuracy == pytest.approx(said.correct[kept].mean())
        by_hand = [
            c > found.parts[int(k)].value
            for c, k in zip(said.confidence, said.prediction, strict=True)
        ]
        assert kept.tolist() == by_hand


def test_a_column_of_groups_is_promised_for_each() -> None:
    rng = np.random.default_rng(5)
    c = rng.beta(6, 0.4, 1500)
    sex = rng.choice(["f", "m"], 1500)
    right = rng.random(1500) < np.where(sex == "f", c, c**4)
    found = fit_threshold((c, right), 0.97, per=sex)
    assert found.per == "group"
    alone = {k: accuracy_values(c[sex == k], right[sex == k], 0.97, 0.025).min() for k in "fm"}
    assert {k: part.value for k, part in found.parts.items()} == alone
    assert found.answers([1.0, 1.0], ["f", "neither"]).tolist() == [True, False]
    both = fit_threshold((c, right), 0.9, per=sex, groups=np.arange(1500) // 2)
    assert both.n == 750


def test_a_tie_of_examples_of_none_is_wrong_in_its_class() -> None:
    said = drawn(np.random.default_rng(6), 600, np.array([0.5, 0.5]), np.zeros(2))
    found = fit_threshold(said, 0.9, per="class")
    for k in range(2):
        mine = said.prediction == k
        assert found.parts[k].none == int((said.target[mine] == NONE).sum())


def test_json_brings_them_back() -> None:
    said = drawn(np.random.default_rng(7), 900, *world(12))
    for pool in (False, True):
        found = fit_threshold(said, 0.85, per="class", pool=pool)
        back = Thresholds.from_json(json.loads(json.dumps(found.to_json(), allow_nan=False)))
        assert back == found
    groups = fit_threshold(said, 0.85, per=said.prediction.astype(str))
    assert Thresholds.from_json(json.loads(json.dumps(groups.to_json()))) == groups


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"per": "group"}, "'class' or a column with a group for each example, not 'group'"),
        ({"per": np.zeros(3)}, "20 examples but `per` is of shape"),
        ({"per": np.zeros(20)}, "whole numbers or texts, not float64"),
        ({"per": "class", "leak": 0.1, "outside": [0.5]}, "`per` promises an accuracy"),
        ({"per": "class", "coverage": 0.9}, "`per` promises an accuracy"),
    ],
)
def test_bad_input_is_named(asked: dict, says: str) -> None:
    said = drawn(np.random.default_rng(8), 20, *world(2))
    with pytest.raises(BadInput) as error:
        fit_threshold(said, 0.9, **asked)
    assert says in str(error.value)


def test_a_pair_has_no_classes() -> None:
    with pytest.raises(BadInput, match="of a pair give the predicted classes"):
        fit_threshold(([0.5], [1]), 0.9, per="class")
    with pytest.raises(BadInput, match="one each is needed"):
        fit_threshold(([0.5], [1]), 0.9, per=["a"]).answers([0.5, 0.6], ["a"])
    with pytest.raises(BadInput, match="say the group of each input"):
        fit_threshold(([0.5], [1]), 0.9, per=["a"]).answers([0.5])
    with pytest.raises(BadInput, match="not thresholds written by ova"):
        Thresholds.from_json({"parts": 3})


def test_pools_are_no_larger_than_they_must_be() -> None:
    """a = 0.9, delta = 0.05: 29 right ones do for one part, 36 for two, 39 or 40 for three."""
    assert examples_needed(0, 0.9, 0.05 / 3) == 39
    assert pooled([100, 100, 39], 0.9, 0.05) == []
    assert pooled([100, 38, 38], 0.9, 0.05) == [1, 2]
    assert pooled([100, 100, 20, 20], 0.9, 0.05) == [2, 3]
    assert pooled([100, 90, 20, 10], 0.9, 0.05) == [1, 2, 3]
    assert pooled([10, 10], 0.9, 0.05) == [0, 1]
    assert in_line(0.9 ** np.array([100, 36, 20]), 0.05) == 2


def test_a_promise_for_some_stands_and_a_class_without_examples_answers_nothing() -> None:
    said = drawn(np.random.default_rng(9), 400, np.array([0.95, 0.05]), np.zeros(2))
    said = replace(said, classes=3)
    found = fit_threshold(said, 0.9, per="class")
    assert [part.promised for part in found.parts.values()] == [True, False, False]
    assert found.promised
    assert found.why_not == ""
    assert found.none == int((said.target == NONE).sum())
    assert (found.parts[2].n, found.parts[2].answered, found.parts[2].accuracy) == (0, 0.0, None)
    nothing = fit_threshold(said.take(slice(0, 10)), 0.9, per="class")
    assert not nothing.promised
    assert nothing.why_not == "cannot be promised for any class"
    assert nothing.value == math.inf
    assert nothing.accuracy is None
