"""Every number against an independent oracle: scikit-learn, netcal, or a slow and obvious loop."""

import math
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, log_loss, roc_auc_score, roc_curve

from narrowing import there
from ova.errors import BadInput
from ova.metrics import DETECTION, METRICS
from ova.metrics.calibration import (
    classwise_error,
    expected_error,
    largest_error,
    reliability,
    rms_error,
)
from ova.metrics.ranking import (
    aupr_inside,
    aupr_outside,
    auroc,
    detection_error,
    fpr_at_tpr,
    precision_recall,
    rank,
    roc,
)
from ova.metrics.selective import (
    GRID,
    accuracy_confidence,
    aurc,
    certainty,
    histogram,
    risk_coverage,
)
from ova.metrics.shift import boxes, mean_over_shift
from ova.metrics.thresholds200 import aupr_200, auroc_200
from ova.predictions import Predictions
from ova.scores import scores_of

TYPES = (np.float32, np.float64)


def answers(confidence, right, dtype=np.float64):
    """Predictions of which only the confidence and the correctness are known."""
    right = np.asarray(right)
    return Predictions(
        id=np.arange(len(right)),
        target=np.zeros(len(right), np.int32),
        prediction=np.where(right, 0, 1).astype(np.int32),
        confidence=np.asarray(confidence, dtype),
        classes=2,
        normalised=None,
    )


def outside(confidence, dtype=np.float64):
    said = answers(confidence, np.zeros(len(confidence), bool), dtype)
    return Predictions(**(vars(said) | {"target": np.full(len(said), -1, np.int32)}))


def drawn(n=500, seed=0, digits=None, dtype=np.float64):
    r = np.random.default_rng(seed)
    c = r.beta(4, 1, n)
    c = (c if digits is None else c.round(digits)).astype(dtype)
    return answers(c, r.random(n) < c, dtype)


def slow_bins(said, bins):
    """Members of each equal-width bin by comparing with every edge."""
    edges = [said.confidence.dtype.type(i / bins) for i in range(bins + 1)]
    for i in range(bins):
        last = i == bins - 1
        yield [
            j
            for j, c in enumerate(said.confidence)
            if edges[i] <= c and (c < edges[i + 1] or (last and c <= 1))
        ]


def slow_gaps(said, bins):
    for members in slow_bins(said, bins):
        if members:
            c = math.fsum(float(said.confidence[j]) for j in members) / len(members)
            right = sum(said.prediction[j] == said.target[j] for j in members) / len(members)
            yield len(members) / len(said), abs(right - c)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bins", [1, 10, 15, 100])
@pytest.mark.parametrize("digits", [None, 1, 2])
def test_calibration_errors_are_those_of_a_loop_over_bins(bins, digits, dtype):
    said = drawn(digits=digits, dtype=dtype)
    gaps = list(slow_gaps(said, bins))
    curve = reliability(said, bins)
    assert curve.count.tolist() == [len(m) for m in slow_bins(said, bins)]
    assert expected_error(curve) == pytest.approx(sum(w * g for w, g in gaps), abs=1e-12)
    assert largest_error(curve) == pytest.approx(max(g for _, g in gaps), abs=1e-12)
    assert rms_error(curve) == pytest.approx(math.sqrt(sum(w * g * g for w, g in gaps)), abs=1e-12)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("bins", [2, 3, 7, 10, 15, 20, 100])
def test_an_edge_belongs_to_the_bin_it_opens_and_one_to_the_last(bins, dtype):
    edges = (np.arange(bins + 1) / bins).astype(dtype)
    below = np.nextafter(edges[1:], dtype(0))
    curve = reliability(answers(edges, np.ones(bins + 1, bool), dtype), bins)
    assert curve.count.tolist() == [1] * (bins - 1) + [2]
    assert (
        reliability(answers(below, np.ones(bins, bool), dtype), bins).count.tolist() == [1] * bins
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(
    ("c", "place"), [(0.0, 0), (1 / 15, 1), (2 / 15, 2), (14 / 15, 14), (1.0, 14)]
)
@pytest.mark.parametrize("right", [True, False])
def test_all_mass_in_one_bin(c, place, right, dtype):
    said = answers([c] * 50, [right] * 50, dtype)
    curve = reliability(said)
    assert curve.count[place] == 50
    for number in (expected_error, largest_error, rms_error):
        assert number(curve) == pytest.approx(abs(right - float(dtype(c))), abs=1e-12)


def test_ece_agrees_with_netcal_where_netcal_is_right():
    from netcal.metrics import ECE

    said = drawn(2000)  # no confidence on an edge: there netcal closes bins on the other side
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = ECE(15).measure(said.confidence, said.correct.astype(int))
    assert expected_error(reliability(said)) == pytest.approx(theirs, abs=1e-12)


def test_reliability_curves_of_parts_add_up():
    said = drawn(1000)
    parts = reliability(said.take(slice(0, 300))) + reliability(said.take(slice(300, 1000)))
    whole = reliability(said)
    assert parts.count.tolist() == whole.count.tolist()
    assert parts.right.tolist() == whole.right.tolist()
    np.testing.assert_allclose(parts.total, whole.total)
    with pytest.raises(BadInput, match="different bins"):
        reliability(said) + reliability(said, 10)


def test_equal_mass_bins_without_ties_are_equal_parts_of_the_sorted_answers():
    said = drawn(1000)
    order = np.argsort(said.confidence)
    c, right = said.confidence[order], said.correct[order]
    starts = [i * 1000 // 15 for i in range(16)]
    parts = [slice(a, b) for a, b in pairwise(starts)]
    slow = sum(abs(c[p].sum() - right[p].sum()) for p in parts) / 1000
    assert expected_error(reliability(said, 15, "equal-mass")) == pytest.approx(slow, abs=1e-12)


def test_equal_mass_bins_keep_ties_together_in_any_order():
    said = drawn(500, digits=1)
    mixed = said.take(np.random.default_rng(1).permutation(500))
    one, two = (reliability(p, 15, "equal-mass") for p in (said, mixed))
    assert one.count.tolist() == two.count.tolist()
    assert one.right.tolist() == two.right.tolist()
    assert len(one.count) <= len(np.unique(said.confidence))
    same = reliability(answers([0.5] * 4, [1, 0, 1, 1]), 15, "equal-mass")
    assert (same.count.tolist(), expected_error(same)) == ([4], 0.25)


@pytest.mark.parametrize("normalised", [True, False])
def test_classwise_error_is_a_loop_over_classes_and_bins(normalised):
    r = np.random.default_rng(0)
    p = r.dirichlet(np.ones(4), 300) if normalised else r.random((300, 4))
    y = r.integers(0, 4, 300)
    said = Predictions.from_probs(p, y, normalised=normalised, keep_probs=True)
    total = 0.0
    for k in range(4):
        for b in range(15):
            members = [i for i in range(300) if min(int(p[i, k] * 15), 14) == b]
            total += abs(sum((y[i] == k) - p[i, k] for i in members)) / 300 / 4
    assert classwise_error(said) == pytest.approx(total, abs=1e-12)


def test_unknown_bins_are_refused():
    with pytest.raises(BadInput, match="equal-width, equal-mass"):
        reliability(drawn(), 15, "equal")
    with pytest.raises(BadInput, match="at least 1 bin"):
        reliability(drawn(), 0)


def test_proper_scores_agree_with_scikit_learn():
    r = np.random.default_rng(0)
    p, y = r.dirichlet(np.ones(5), 400), r.integers(0, 5, 400)
    said = Predictions.from_probs(p, y, normalised=True)
    assert METRICS["accuracy"](said) == np.mean(p.argmax(1) == y)
    assert METRICS["nll"](said) == pytest.approx(log_loss(y, p), abs=1e-12)
    brier = np.mean(((p - np.eye(5)[y]) ** 2).sum(1))
    assert METRICS["brier"](said) == pytest.approx(brier, abs=1e-12)


def test_normalised_and_one_vs_all_scores_are_never_confused():
    p, y = [[0.5, 0.5]], [0]
    names = ("nll", "brier", "nll_one_vs_all", "brier_one_vs_all")
    for normalised, defined in ((True, names[:2]), (False, names[2:])):
        said = Predictions.from_probs(p, y, normalised=normalised)
        assert [n for n in names if METRICS[n](said) is not None] == list(defined)


def test_one_vs_all_scores_are_those_of_k_binary_problems():
    r = np.random.default_rng(0)
    p, y = r.random((200, 4)), r.integers(0, 4, 200)
    said = Predictions.from_probs(p, y, normalised=False)
    yes = np.eye(4)[y]
    each = sum(log_loss(yes[:, k], p[:, k]) for k in range(4))
    assert METRICS["nll_one_vs_all"](said) == pytest.approx(each, abs=1e-12)
    brier = ((p - yes) ** 2).sum(1).mean()
    assert METRICS["brier_one_vs_all"](said) == pytest.approx(brier, abs=1e-12)


def test_what_is_not_in_the_predictions_is_none():
    said = drawn()
    none = {name for name, metric in METRICS.items() if metric(said) is None}
    assert none == {
        "nll", "nll_one_vs_all", "brier", "brier_one_vs_all", "ece_classwise",
    }  # fmt: skip
    assert list(scores_of(said)) == ["max_p"]


scores = st.lists(st.integers(0, 6), min_size=1, max_size=40)


def labels(a, b):
    return np.repeat([1, 0], [len(a), len(b)]), np.concatenate([a, b])


@given(a=scores, b=scores, dtype=st.sampled_from(TYPES))
@settings(max_examples=150, deadline=None)
def test_ranking_with_heavy_ties_agrees_with_scikit_learn(a, b, dtype):
    a, b = np.array(a, dtype) / 7, np.array(b, dtype) / 7
    check_ranking(a, b)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("digits", [1, 2, 9])
def test_ranking_of_many_agrees_with_scikit_learn(digits, dtype):
    r = np.random.default_rng(0)
    a, b = r.normal(1, 1, 30_000).round(digits), r.normal(0, 1, 20_000).round(digits)
    check_ranking(a.astype(dtype), b.astype(dtype))


def check_ranking(a, b):
    y, s = labels(a, b)
    r = rank(a, b)
    assert auroc(r) == pytest.approx(roc_auc_score(y, s), abs=1e-12)
    assert aupr_inside(r) == pytest.approx(average_precision_score(y, s), abs=1e-12)
    assert aupr_outside(r) == pytest.approx(average_precision_score(1 - y, -s), abs=1e-12)
    fpr, tpr, _ = roc_curve(y, s, drop_intermediate=False)
    np.testing.assert_allclose(roc(r)[0], fpr, atol=1e-12)
    np.testing.assert_allclose(roc(r)[1], tpr, atol=1e-12)
    assert fpr_at_tpr(r) == pytest.approx(fpr[np.argmax(tpr >= 0.95 - 1e-12)], abs=1e-12)
    assert detection_error(r) == pytest.approx(np.min(1 - tpr + fpr) / 2, abs=1e-12)


@given(a=scores, b=scores)
@settings(max_examples=100, deadline=None)
def test_numbers_are_those_of_their_curves(a, b):
    r = rank(np.array(a, float), np.array(b, float))
    fpr, tpr = roc(r)
    assert auroc(r) == pytest.approx(np.trapezoid(tpr, fpr), abs=1e-12)
    recall, precision = precision_recall(r)
    steps = np.diff(np.append(0, recall))
    assert aupr_inside(r) == pytest.approx((steps * precision).sum(), abs=1e-12)


def test_ninety_five_percent_of_twenty_is_nineteen():
    inside = np.arange(1, 21) / 20  # the smallest may be missed
    assert fpr_at_tpr(rank(inside, [0.07])) == 0
    assert fpr_at_tpr(rank(inside, [0.1])) == 1


@pytest.mark.parametrize("measure", DETECTION.values(), ids=DETECTION)
def test_detection_is_best_for_separated_sets_and_says_which_way(measure):
    good, bad = measure(rank([0.8, 0.9], [0.1, 0.2])), measure(rank([0.1, 0.2], [0.8, 0.9]))
    assert (good > bad) if measure.better == "higher" else (good < bad)


def test_infinite_scores_are_ranked():
    r = rank(np.array([np.inf, 1.0]), np.array([-np.inf, 1.0]))
    assert auroc(r) == 0.875


@pytest.mark.parametrize(("a", "b", "side"), [([], [0.5], "inside"), ([0.5], [], "outside")])
def test_one_kind_alone_cannot_be_ranked(a, b, side):
    with pytest.raises(BadInput, match=f"no example {side}"):
        rank(a, b)


def test_a_score_that_is_nan_is_refused():
    with pytest.raises(BadInput, match="row 1 outside: the score is NaN"):
        rank([0.5], [0.5, math.nan])
    with pytest.raises(BadInput, match="one per example"):
        rank([[0.5]], [0.5])


def test_two_hundred_thresholds_are_those_of_a_loop():
    r = np.random.default_rng(0)
    a, b = r.beta(50, 1, 400), r.beta(20, 1, 300)
    thresholds = [-1e-7, *(i / 199 for i in range(1, 199)), 1 + 1e-7]
    tp = [sum(1 - c > t for c in b) for t in thresholds]
    fp = [sum(1 - c > t for c in a) for t in thresholds]
    area, precision_area = 0.0, 0.0
    for i in range(199):
        area += (fp[i] - fp[i + 1]) * (tp[i] + tp[i + 1]) / 2 / 400 / 300
        p0, p1 = tp[i] + fp[i], tp[i + 1] + fp[i + 1]
        if p0 > p1:
            slope = (tp[i] - tp[i + 1]) / (p0 - p1)
            start = tp[i + 1] - slope * p1
            step = tp[i] - tp[i + 1] + (start * math.log(p0 / p1) if p1 else 0)
            precision_area += slope * step / 300
    assert auroc_200(a, b) == pytest.approx(area, abs=1e-12)
    assert aupr_200(a, b) == pytest.approx(precision_area, abs=1e-12)
    with pytest.raises(BadInput, match="at least one"):
        auroc_200(a, b[:0])


def test_two_hundred_thresholds_lose_the_order_of_saturated_confidences():
    r = np.random.default_rng(0)
    a, b = 1 - r.random(2000) * 1e-4, 1 - r.random(2000) * 1e-3
    assert auroc(rank(a, b)) > 0.9
    assert auroc_200(a, b) == pytest.approx(0.5)


@pytest.mark.parametrize("dtype", TYPES)
def test_accuracy_against_confidence_is_a_loop_over_thresholds(dtype):
    inside, strange = drawn(400, digits=2, dtype=dtype), outside(drawn(300, 1).confidence, dtype)
    for mixed in (None, strange):
        curve = accuracy_confidence(inside, mixed)
        for t, kept, share, accuracy in zip(
            curve.threshold, curve.kept, curve.answered, curve.accuracy, strict=True
        ):
            chosen = inside.confidence >= dtype(t)
            more = 0 if mixed is None else int((mixed.confidence >= dtype(t)).sum())
            right = int((chosen & inside.correct).sum())
            assert kept == chosen.sum() + more
            assert share == kept / (400 + (300 if mixed is not None else 0))
            assert accuracy == right / kept if kept else math.isnan(accuracy)


def test_the_grid_has_every_hundredth_and_is_finer_near_one():
    assert {round(i / 100, 2) for i in range(101)} <= set(GRID.tolist())
    assert GRID[-12:].tolist() == [
        0.99, 0.991, 0.992, 0.993, 0.994, 0.995, 0.996, 0.997, 0.998, 0.999, 0.9999, 1,
    ]  # fmt: skip


def slow_aurc(right, order):
    wrong, total = 0, 0.0
    for k, i in enumerate(order, 1):
        wrong += not right[i]
        total += wrong / k
    return total / len(order)


def test_aurc_without_ties_is_the_mean_risk_of_the_most_confident():
    said = drawn(300)
    assert aurc(certainty(said)) == pytest.approx(
        slow_aurc(said.correct, np.argsort(-said.confidence)), abs=1e-12
    )


def test_aurc_with_ties_is_the_mean_over_their_orders():
    from itertools import permutations

    c, right = np.array([0.9, 0.5, 0.5, 0.5, 0.2]), [False, True, False, True, True]
    orders = [(0, *middle, 4) for middle in permutations((1, 2, 3))]
    expected = np.mean([slow_aurc(right, order) for order in orders])
    assert aurc(certainty(answers(c, right))) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("right", [True, False])
def test_aurc_where_all_are_right_or_all_wrong(right):
    assert aurc(certainty(answers([0.3, 0.5, 0.5], [right] * 3))) == float(not right)


def test_risk_against_coverage_ends_at_the_error_of_all():
    inside, strange = drawn(400), outside(drawn(100, 1).confidence)
    coverage, risk = risk_coverage(certainty(inside, strange))
    assert coverage[-1] == 1
    assert risk[-1] == pytest.approx((400 - inside.correct.sum() + 100) / 500)
    assert (np.diff(coverage) > 0).all()


def test_the_histogram_counts_three_sets():
    inside, strange = drawn(400, digits=2), outside(drawn(300, 1).confidence)
    h = histogram(inside, strange, bins=20)
    edges = np.arange(21) / 20
    for counted, c in (
        (h.right, inside.confidence[inside.correct]),
        (h.wrong, inside.confidence[~inside.correct]),
        (h.outside, strange.confidence),
    ):
        assert counted.tolist() == np.histogram(c, edges)[0].tolist()
    assert histogram(inside).outside.sum() == 0


def test_shift_is_averaged_over_types_then_severities():
    table = {("fog", 1): 0.9, ("snow", 1): 0.7, ("noise", 1): 0.2, ("fog", 2): 0.4}
    box = boxes(table)[1]
    assert (box.minimum, box.median, box.maximum, box.types) == (0.2, 0.7, 0.9, 3)
    assert (box.lower_quartile, box.upper_quartile) == pytest.approx((0.45, 0.8))
    assert mean_over_shift(table) == pytest.approx((0.6 + 0.4) / 2)


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_ignores_the_order_of_the_rows(name):
    r = np.random.default_rng(0)
    for normalised in (True, False):
        p = r.dirichlet(np.ones(4), 200) if normalised else r.random((200, 4)).round(1)
        y = r.integers(0, 4, 200)
        said = Predictions.from_probs(p, y, normalised=normalised, keep_probs=True)
        mixed = said.take(r.permutation(200))
        one, two = METRICS[name](said), METRICS[name](mixed)
        assert one == two or one == pytest.approx(two, abs=1e-12)


@pytest.mark.parametrize("name", [n for n, m in METRICS.items() if m.better != "neither"])
def test_every_metric_prefers_a_perfect_model(name):
    y = np.arange(40) % 4
    sure, vague = np.full((40, 4), 0.01), np.full((40, 4), 0.2)
    sure[np.arange(40), y] = 0.97
    vague[np.arange(40), (y + 1) % 4] = 0.4
    for normalised in (True, False):
        good, bad = (
            METRICS[name](Predictions.from_probs(p, y, normalised=normalised, keep_probs=True))
            for p in (sure, vague)
        )
        if good is not None:
            bad = there(bad)
            assert (good > bad) if METRICS[name].better == "higher" else (good < bad)


def test_the_score_of_any_class_has_the_order_of_one_minus_the_product():
    p = np.random.default_rng(0).random((500, 5))
    said = Predictions.from_probs(p, np.zeros(500, int), normalised=False)
    score = scores_of(said)["any"]
    np.testing.assert_array_equal(np.argsort(score), np.argsort(1 - (1 - p).prod(1)))
