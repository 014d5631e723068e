"""Values on halves of the examples: the same halves for all, as far apart as new sets would be."""

from typing import Any

import numpy as np
import pytest

from narrowing import there
from ova.metrics import METRICS, detection, halves
from ova.metrics.evaluate import evaluate
from ova.metrics.ranking import auroc, rank
from ova.predictions import Predictions, SetName

TEST, FOG, RAIN, OTHER = map(SetName, ("test", "shift/fog/5", "shift/rain/5", "ood/other"))


def said(n=400, seed=0, outside=False, dtype=np.float64):
    r = np.random.default_rng(seed)
    p = r.dirichlet(np.ones(3), n).astype(dtype)
    y = np.full(n, -1) if outside else np.array([r.choice(3, p=row / row.sum()) for row in p])
    return Predictions.from_probs(p, y, normalised=True, keep_probs=True)


def drawn(name, rows):
    return np.concatenate(list(halves.halves(name, rows))).astype(bool)


def test_halves_follow_from_the_set_and_its_size_and_changed_copies_share_them():
    one = drawn(TEST, 500)
    assert one.shape == (halves.COUNT, 500)
    assert np.array_equal(one, drawn(TEST, 500))
    assert np.array_equal(drawn(FOG, 500), drawn(RAIN, 500))
    for other in (drawn(FOG, 500), drawn(OTHER, 500), drawn(TEST, 501)[:, :500]):
        assert (one == other).mean() == pytest.approx(0.5, abs=0.02)
    assert one.mean(axis=1) == pytest.approx(0.5, abs=0.1)
    assert len(np.unique(one, axis=0)) == halves.COUNT


def test_few_halves_at_a_time_are_the_same_halves(monkeypatch):
    whole = drawn(TEST, 100)
    monkeypatch.setattr(halves, "CELLS", 700)
    assert np.array_equal(drawn(TEST, 100), whole)


def test_a_mean_on_halves_is_the_metric_of_each_half():
    p = said()
    found = halves.of_set(TEST, p, ("accuracy",))["accuracy"]
    slow = [METRICS["accuracy"](p.take(half)) for half in drawn(TEST, len(p))]
    assert found.values == pytest.approx(slow, abs=1e-12)
    assert found.excess == 0


def test_the_aurocs_of_halves_are_those_of_each_half_to_first_order():
    a, b = said(600), said(500, 1, outside=True)
    found = there(halves.auroc_of_sets((TEST, a.confidence), (OTHER, b.confidence))).values
    pairs = zip(drawn(TEST, 600), drawn(OTHER, 500), strict=True)
    slow = np.array([auroc(rank(a.confidence[i], b.confidence[j])) for i, j in pairs])
    whole = there(detection("auroc", "max_p")(a, b))
    assert np.corrcoef(found, slow)[0, 1] > 0.999
    assert (found - whole).std() == pytest.approx((slow - whole).std(), rel=0.02)


def test_placements_average_to_the_auroc_with_ties():
    a, b = np.array([0.9, 0.5, 0.5, 0.2]), np.array([0.5, 0.1, 0.9])
    above, below = halves.placements(a, b)
    assert above.values == pytest.approx([2.5 / 3, 1.5 / 3, 1.5 / 3, 1 / 3])
    assert above.values.mean() == pytest.approx(auroc(rank(a, b)), abs=1e-15)
    assert below.values.mean() == pytest.approx(auroc(rank(a, b)), abs=1e-15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["ece", "ece_equal_mass"])
def test_signed_gaps_average_to_the_ece(name, dtype):
    p = said(1000, dtype=dtype)
    edges = (np.arange(1, 15) / 15).astype(dtype)  # confidences on the edges of bins too
    p = Predictions(**(vars(p) | {"confidence": np.append(p.confidence[:-14], edges)}))
    rows = there(METRICS[name].by_row(p))
    assert rows.values.mean() == pytest.approx(METRICS[name](p), abs=1e-12)
    assert np.abs(rows.values) == pytest.approx(np.abs(p.correct - p.confidence), abs=1e-7)


def test_the_excess_is_what_a_calibrated_model_shows_and_nothing_where_signs_are_known():
    r = np.random.default_rng(0)

    def made(gap):
        c = r.uniform(0.35, 0.95, 2000)
        wrong = (r.random(2000) >= c - gap).astype(np.int32)
        zeros = np.zeros(2000, np.int32)
        head: dict[str, Any] = {"id": np.arange(2000), "target": zeros, "classes": 2}
        head["normalised"] = True
        return Predictions(prediction=wrong, confidence=c, **head)

    calm = [made(0) for _ in range(400)]
    shown = np.mean([there(METRICS["ece"](p)) for p in calm])
    assert np.mean([there(METRICS["ece"].by_row(p)).excess for p in calm]) == pytest.approx(
        shown, rel=0.05
    )
    assert there(METRICS["ece"].by_row(made(0.3))).excess == 0


def test_halves_vary_as_new_sets_do():
    found = halves.of_set(TEST, said(2000), ("accuracy",))["accuracy"]
    values = [there(METRICS["accuracy"](said(2000, seed))) for seed in range(40)]
    assert found.values.std() == pytest.approx(np.std(values), rel=0.3)


def test_what_verdicts_are_about_has_its_halves_and_nothing_else():
    sets = {"test": said(100), "validation": said(60, 9), "ood/x": said(80, 2, outside=True)}
    sets |= {f"shift/{t}/{s}": said(50, s) for t in ("fog", "rain") for s in (1, 3)}
    rows, _ = evaluate(sets, halves=("max_p",))
    with_halves = {(r["dataset"], r["metric"], r.get("score")): r for r in rows if "halves" in r}
    assert set(with_halves) == {
        ("test", "accuracy", None),
        ("test", "ece", None),
        ("shift/*/3", "ece", None),
        ("ood/x", "auroc", "max_p"),
    }
    for row in with_halves.values():
        assert len(row["halves"]) == halves.COUNT
        assert np.mean(row["halves"]) == pytest.approx(row["value"], abs=0.05)
    strong = [halves.of_set(FOG, sets[f"shift/{t}/3"], ("ece",))["ece"] for t in ("fog", "rain")]
    expected = np.mean([h.values for h in strong], axis=0)
    assert with_halves["shift/*/3", "ece", None]["halves"] == pytest.approx(expected, rel=1e-5)
    plain, _ = evaluate(sets)
    assert plain == [
        {k: v for k, v in row.items() if k not in ("halves", "excess")} for row in rows
    ]


def test_too_few_examples_have_no_halves():
    few = {"test": said(29), "ood/x": said(100, outside=True)}
    assert not any("halves" in row for row in evaluate(few, halves=("max_p",))[0])
