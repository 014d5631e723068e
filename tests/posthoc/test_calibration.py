"""Calibration after training: the fits are those of others, the order is kept, bad input is named."""

import json
import runpy
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from ova.cli import app as cli
from ova.errors import BadInput
from ova.metrics import METRICS
from ova.metrics.evaluate import CALIBRATED, evaluate
from ova.posthoc.calibration import CALIBRATIONS, Beta, Isotonic, Temperature, Top, from_json
from ova.posthoc.calibration.fitting import FLOOR, fit_slopes, smoothed
from ova.posthoc.calibration.scores import logs
from ova.posthoc.independent import one_of_each
from ova.predictions import Predictions, read_any, write
from ova.report import evidence, select
from ova.training.run_folder import Run

N, K = 1500, 5


def softmax_said(seed=0, n=N, sharp=3.0):
    """A softmax that is `sharp` times too sure."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, (n, K))
    p = np.exp(log_softmax(z, 1))
    y = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    return Predictions.from_logits(
        sharp * z, log_softmax(sharp * z, 1), y, normalised=True, keep_probs=True
    )


def one_vs_all_said(seed=0, n=N, shift=-2.0, dtype=np.float64):
    """One-vs-all that is not sure enough."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 2, (n, K)) - 1
    p = np.exp(log_softmax(2 * z, 1))
    y = (p.cumsum(1) > rng.random((n, 1))).argmax(1)
    z = (z + shift).astype(dtype)
    return Predictions.from_logits(z, -np.logaddexp(0, -z), y, normalised=False, keep_probs=True)


SAID = {"softmax": softmax_said, "one-vs-all": one_vs_all_said}
BOTH = pytest.mark.parametrize("said", SAID.values(), ids=SAID)
EVERY = pytest.mark.parametrize("method", CALIBRATIONS)


def ece(p):
    return METRICS["ece"](p)


def logit(p):
    return np.log(p) - np.log1p(-p)


# Promises over the table


@BOTH
@EVERY
def test_the_error_on_new_examples_falls_and_answers_stay(said, method):
    held, new = said(0), said(1)
    after = CALIBRATIONS[method].fit(held).apply(new)
    if method == "temperature" and not new.normalised:
        assert ece(after) < ece(new)  # one-vs-all is shifted, which no temperature undoes
    else:
        assert ece(after) < 0.6 * ece(new)
        assert ece(after) < 0.05
    assert after.confidence.min() >= 0
    assert after.confidence.max() <= 1
    for name in ("id", "target", "prediction", "max_logit", "energy"):
        assert np.array_equal(getattr(after, name), getattr(new, name)), name
    for name in ("log_p", "log_none", "squared_error", "entropy", "probs"):
        assert getattr(after, name) is None, name


@BOTH
@EVERY
def test_the_order_is_what_the_table_says(said, method):
    held, new = said(0), said(1)
    kind = CALIBRATIONS[method]
    assert kind.order in ("kept", "weakly", "may change")
    order = np.argsort(new.confidence, kind="stable")
    after = kind.fit(held).apply(new).confidence[order]
    rises = np.diff(after)[np.diff(new.confidence[order]) > 0]
    assert kind.keeps_order(new.normalised) == bool((rises > 0).all())
    if kind.order == "kept":
        assert (rises > 0).all()
    elif kind.order == "weakly":
        assert (rises >= 0).all()
        assert (rises == 0).any()
    elif new.normalised:
        assert (rises < 0).any()  # so temperature is rightly not promised to keep it
    else:
        assert (rises > 0).all()


@BOTH
@EVERY
def test_json_gives_back_the_same_calibration(said, method):
    fitted = CALIBRATIONS[method].fit(said())
    again = from_json(json.loads(json.dumps(fitted.to_json(), allow_nan=False)))
    assert again == fitted
    new = said(1)
    assert np.array_equal(again.confidence(new), fitted.confidence(new))


@BOTH
@EVERY
def test_a_fit_does_not_depend_on_the_order_of_the_examples(said, method):
    held = said()
    turned = held.take(np.random.default_rng(5).permutation(len(held)))
    one, other = (CALIBRATIONS[method].fit(p).confidence(said(1)) for p in (held, turned))
    assert one == pytest.approx(other, abs=1e-8)


@EVERY
def test_an_example_of_none_of_the_classes_counts_as_wrong_or_not_at_all(method):
    held = softmax_said()
    none = replace(held, target=np.where(np.arange(N) < 200, -1, held.target).astype(np.int32))
    less = CALIBRATIONS[method].fit(none).confidence(held).mean()
    if method == "temperature":  # it has no log p
        kept = held.take(np.arange(200, N))
        assert less == pytest.approx(Temperature.fit(kept).confidence(held).mean())
    else:
        assert less < CALIBRATIONS[method].fit(held).confidence(held).mean() - 0.05


# Oracles


class Scorer(ClassifierMixin, BaseEstimator):
    """A fitted classifier whose decision is its input."""

    def fit(self, x, y):
        self.classes_ = np.array([0, 1])
        return self

    def decision_function(self, x):
        return x[:, 0]

    def predict(self, x):
        return (x[:, 0] > 0).astype(int)


@BOTH
def test_top_is_the_sigmoid_of_scikit_learn(said):
    held, new = said(0), said(1)
    of = (lambda p: logit(p.confidence)) if held.normalised else (lambda p: p.max_logit)
    x, right = of(held)[:, None], held.correct
    scorer = FrozenEstimator(Scorer().fit(x, right))
    theirs = CalibratedClassifierCV(scorer, method="sigmoid").fit(x, right)
    assert Top.fit(held).confidence(new) == pytest.approx(
        theirs.predict_proba(of(new)[:, None])[:, 1], abs=1e-4
    )


def soft_logistic(x, t):
    """Logistic regression without penalty on soft targets: each example as right and as wrong."""
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000)
    twice, y = np.vstack([x, x]), np.repeat([1, 0], len(x))
    return model.fit(twice, y, sample_weight=np.concatenate([t, 1 - t]))


@BOTH
def test_top_and_beta_are_logistic_regressions_on_smoothed_targets(said):
    held = said()
    t, c = smoothed(held.correct), held.confidence
    s = logit(c) if held.normalised else held.max_logit
    theirs = soft_logistic(s[:, None], t).predict_proba(s[:, None])[:, 1]
    assert Top.fit(held).confidence(held) == pytest.approx(theirs, abs=1e-5)
    x = np.stack([np.log(c), -np.log1p(-c)], 1)
    model = soft_logistic(x, t)
    ours = Beta.fit(held)
    if (model.coef_ > 0).all():
        assert ours.confidence(held) == pytest.approx(model.predict_proba(x)[:, 1], abs=1e-4)


def test_beta_within_its_bounds_is_the_best_of_all():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2)) * [1, 5] + [2, -3]
    t = expit(1.5 * x[:, 0] - 0.4 * x[:, 1])  # the second slope wants to be negative
    a, b = fit_slopes(x, t)
    least = FLOOR / x.std(0)
    found = minimize(
        lambda w: (np.logaddexp(0, x @ w[:2] + w[2]) - t * (x @ w[:2] + w[2])).mean(),
        [0.1, 0.1, 0.0],
        bounds=[(least[0], None), (least[1], None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-10},
    )
    assert a[1] == pytest.approx(least[1])
    assert [*a, b] == pytest.approx(found.x, abs=1e-4)


@BOTH
def test_isotonic_is_that_of_scikit_learn(said):
    held, new = said(0), said(1)
    of = (lambda p: logit(p.confidence)) if held.normalised else (lambda p: p.max_logit)
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    theirs.fit(of(held), held.correct)
    ours = Isotonic.fit(held)
    assert ours.confidence(new) == pytest.approx(theirs.predict(of(new)), abs=1e-9)
    assert len(ours.x) < len(held) / 4


def test_temperature_is_the_best_of_a_grid_and_undoes_what_was_done():
    held = softmax_said(n=4000)
    u = np.log(held.probs)
    grid = np.linspace(2, 4.5, 501)
    loss = [-log_softmax(u / t, 1)[np.arange(4000), held.target].mean() for t in grid]
    fitted = Temperature.fit(held)
    assert fitted.temperature == pytest.approx(grid[np.argmin(loss)], abs=0.006)
    assert fitted.temperature == pytest.approx(3, rel=0.1)
    p = np.exp(log_softmax(u / fitted.temperature, 1)).max(1)
    assert fitted.confidence(held) == pytest.approx(p, abs=1e-12)


@pytest.fixture(scope="module")
def netcal():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import netcal.scaling

        yield netcal.scaling


@pytest.mark.filterwarnings("ignore")
def test_temperature_is_that_of_netcal(netcal):
    held, new = softmax_said(0), softmax_said(1)
    theirs = netcal.TemperatureScaling()
    theirs.fit(held.probs, held.target)
    expected = theirs.transform(new.probs).max(1)
    assert Temperature.fit(held).confidence(new) == pytest.approx(expected, abs=2e-3)


@BOTH
@pytest.mark.filterwarnings("ignore")
def test_beta_is_that_of_netcal(netcal, said):
    held, new = said(0), said(1)
    theirs = netcal.BetaCalibration()
    theirs.fit(held.confidence, held.correct.astype(int))
    ours = Beta.fit(held)
    # Their targets are not smoothed, hence not closer.
    assert ours.confidence(new) == pytest.approx(theirs.transform(new.confidence), abs=0.01)


# Corners


@EVERY
def test_float32_that_says_one_is_calibrated_too(method):
    held = one_vs_all_said(shift=17.0, dtype=np.float32)
    assert (held.confidence == 1).mean() > 0.5
    fitted = CALIBRATIONS[method].fit(held)
    assert np.isfinite(fitted.confidence(held)).all()
    if method in ("top", "isotonic"):  # the largest logit still tells them apart
        assert ece(fitted.apply(held)) < 0.04


@pytest.mark.parametrize(("dtype", "below"), [(np.float32, 2**-25), (np.float64, 2**-53)])
def test_a_confidence_of_one_counts_as_just_below_it(dtype, below):
    """Half a step of its type, or the last number before 1 in float64, and at 0 the first after it."""
    sure, unsure = logs(np.array([0, 1], dtype))
    tiny = float(np.finfo(dtype).tiny)
    assert sure == pytest.approx([np.log(tiny), np.log1p(-below)], rel=1e-12)
    assert unsure == pytest.approx([np.log1p(-tiny), np.log(below)], rel=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("normalised", [True, False])
@EVERY
def test_the_votes_of_a_forest_are_calibrated(method, normalised, dtype):
    """Probabilities that are exactly zero and one, and often wrong."""
    rng = np.random.default_rng(0)
    p = rng.multinomial(10, rng.dirichlet(np.full(4, 0.2), 400)) / 10
    y = np.where(rng.random(400) < 0.8, p.argmax(1), rng.integers(4, size=400))
    held = Predictions.from_probs(p.astype(dtype), y, normalised=normalised, keep_probs=True)
    sure = held.confidence == 1
    assert 0.5 < held.correct[sure].mean() < 1
    after = CALIBRATIONS[method].fit(held).confidence(held)
    assert np.isfinite(after).all()
    assert after[sure].mean() == pytest.approx(held.correct[sure].mean(), abs=0.1)


def test_separated_answers_give_finite_numbers():
    c = np.linspace(0.1, 0.9, 100)
    said = three_columns(c, c > 0.5)
    for kind in (Top, Beta):
        after = kind.fit(said).confidence(said)
        assert 0.5 < after[-1] < 1
        assert 0 < after[0] < 0.5


def test_confidence_that_falls_with_rightness_becomes_nearly_constant_and_keeps_its_order():
    c = np.linspace(0.1, 0.9, 100)
    said = three_columns(c, c < 0.5)
    for kind in (Top, Beta):
        after = kind.fit(said).confidence(said)
        assert (np.diff(after) > 0).all()
        assert after == pytest.approx(said.correct.mean(), abs=0.01)


def two_scores(high, low):
    """Confidences 3/4 and 1/4, their scores log 3 and -log 3; so many (right, wrong) of each."""
    c = np.repeat([0.75, 0.25], [sum(high), sum(low)])
    return three_columns(c, np.repeat([True, False, True, False], [*high, *low]))


@pytest.mark.parametrize("kind", [Top, Beta])
def test_targets_are_shrunk_by_one_right_and_one_wrong_answer(kind):
    """Two scores can be fitted exactly: to (N+ + 1) / (N+ + 2) and 1 / (N- + 2), never 1 and 0."""
    after = kind.fit(two_scores((30, 0), (0, 20))).confidence(two_scores((1, 0), (0, 1)))
    assert after == pytest.approx([31 / 32, 1 / 22], abs=1e-7)
    # In a mixture each score has the mean of the targets of its answers.
    after = kind.fit(two_scores((24, 6), (5, 15))).confidence(two_scores((1, 0), (0, 1)))
    up, down = 30 / 31, 1 / 23  # of 29 right and 21 wrong ones
    expected = [(24 * up + 6 * down) / 30, (5 * up + 15 * down) / 20]
    assert after == pytest.approx(expected, abs=1e-7)
    assert smoothed(np.array([True, True, False])).tolist() == [3 / 4, 3 / 4, 1 / 3]


def test_a_slope_is_at_least_a_thousandth_per_standard_deviation():
    """More confidence never means less, however the answers lie."""
    turned = two_scores((0, 25), (25, 0))
    found = Top.fit(turned)
    assert found.a == pytest.approx(0.001 / np.log(3))
    assert found.b == pytest.approx(0, abs=1e-9)  # as many right as wrong ones
    assert FLOOR == 0.001
    c = np.linspace(0.1, 0.9, 60)
    fitted = Beta.fit(three_columns(c, c < 0.5))
    assert fitted.a == pytest.approx(0.001 / np.log(c).std())
    assert fitted.b == pytest.approx(0.001 / np.log1p(-c).std())
    steep = Temperature.fit(replace(turned, normalised=False))
    assert steep.temperature == pytest.approx(np.log(3) / 0.001)


@pytest.mark.parametrize(("right", "sure"), [(95, 0.6), (60, 0.95), (999, 0.9), (510, 0.99)])
def test_the_temperature_of_one_confidence_is_known(right, sure):
    """T = logit(what is said) / logit(what is true), also where nearly all answers are right."""
    n = 100 if right < 100 else 1000
    p = np.tile([sure, 1 - sure], (n, 1))
    fitted = Temperature.fit(
        Predictions.from_probs(p, np.arange(n) >= right, normalised=True, keep_probs=True)
    )
    truth = right / n
    expected = np.log(sure / (1 - sure)) / np.log(truth / (1 - truth))
    assert fitted.temperature == pytest.approx(expected, rel=1e-6)


def test_temperatures_stay_within_a_thousand():
    p = np.tile([[0.9, 0.1]], (50, 1))
    most = np.arange(50) < 25  # half of the answers are right: nothing is known
    said = Predictions.from_probs(p, most.astype(int), normalised=True, keep_probs=True)
    assert Temperature.fit(said).temperature == 1000
    y = np.r_[np.zeros(49, int), 1]
    sure = np.where(np.arange(50)[:, None] < 49, [[0.9, 0.1]], [[0.5, 0.5]])
    said = Predictions.from_probs(sure, y, normalised=True, keep_probs=True)
    assert Temperature.fit(said).temperature == 0.001


def three_columns(confidence, right):
    right = np.asarray(right)
    return Predictions(
        id=np.arange(len(right)),
        target=np.where(right, 0, 1).astype(np.int32),
        prediction=np.zeros(len(right), np.int32),
        confidence=np.asarray(confidence),
        classes=None,
        normalised=None,
    )


# Bad input


@EVERY
def test_bad_input_is_named(method):
    kind, held = CALIBRATIONS[method], softmax_said()
    with pytest.raises(BadInput, match=f"at least {kind.fewest} held-out examples, there are 3"):
        kind.fit(held.take(slice(3)))
    with pytest.raises(BadInput, match="answers are right"):
        kind.fit(replace(held, target=held.prediction))
    with pytest.raises(BadInput, match="answers are wrong"):
        kind.fit(replace(held, target=(held.prediction + 1).astype(np.int32) % K))
    broken = held.confidence.copy()
    broken[7] = np.nan
    with pytest.raises(BadInput, match=r"1 of 1500 values of confidence .* row 7"):
        kind.fit(replace(held, confidence=broken))
    with pytest.raises(BadInput, match="fitted on probabilities that sum to one, these are one-"):
        kind.fit(held).apply(one_vs_all_said())


def test_what_cannot_be_told_from_the_columns_is_said():
    held = softmax_said()
    with pytest.raises(BadInput, match="needs the matrix of probabilities"):
        Temperature.fit(replace(held, probs=None))
    with pytest.raises(BadInput, match="needs the matrix of probabilities"):
        Temperature.fit(held).apply(replace(held, probs=None))
    said = one_vs_all_said()
    with pytest.raises(BadInput, match="fitted on the largest logit"):
        Top.fit(said).apply(replace(said, max_logit=None))
    flat = replace(held, confidence=np.full(N, 0.5))
    for kind in (Top, Beta):
        with pytest.raises(BadInput, match="scores are equal"):
            kind.fit(flat)
    broken = np.where(np.arange(N) == 4, np.nan, said.max_logit)
    with pytest.raises(BadInput, match="max_logit are NaN"):
        Top.fit(replace(said, max_logit=broken))
    broken = np.where(np.arange(N) == 4, np.inf, said.max_logit)
    with pytest.raises(BadInput, match="max_logit are NaN or infinite, the first in row 4"):
        Top.fit(replace(said, max_logit=broken))
    assert Top.fit(said).confidence(replace(said, max_logit=broken))[4] == 1
    with pytest.raises(BadInput, match="are they logits"):
        Beta.fit(replace(held, confidence=held.confidence * 3))


TOP = {"method": "top", "n": 9, "normalised": None, "a": 1.0, "b": 0.0, "score": "max_logit"}
KNOTS = {"method": "isotonic", "n": 9, "normalised": None, "score": "max_logit"}


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ({}, "no method"),
        ([], "no method"),
        (TOP | {"method": "tops"}, "did you mean 'top'"),
        (TOP | {"a": -1.0}, "positive"),
        (TOP | {"a": float("nan")}, "not finite"),
        (TOP | {"b": "much"}, "not a calibration"),
        (TOP | {"more": 1}, "not a calibration"),
        (TOP | {"score": "energy"}, "not 'energy'"),
        (KNOTS | {"x": [0, 1], "y": [0.7, 0.2]}, "must rise"),
        (KNOTS | {"x": [0, 1], "y": [0.7]}, "must rise"),
        (KNOTS | {"x": [], "y": []}, "must rise"),
        (KNOTS | {"x": [0, 1], "y": [0.7, 1.2]}, "must rise"),
        ({"method": "top", "why_not": "all answers are right"}, "no calibration: all answers"),
    ],
)
def test_foreign_json_is_refused(row, what):
    with pytest.raises(BadInput, match=what):
        from_json(row)


# Measurements


def test_calibrated_rows_are_marked_and_only_what_calibration_changes():
    sets = {"validation": softmax_said(0), "test": softmax_said(1)}
    sets |= {f"shift/fog/{s}": softmax_said(1 + s, sharp=3 + s) for s in (1, 2)}
    fitted = Top.fit(sets["validation"])
    rows = [r for r in evaluate(sets, calibration=fitted)[0] if "calibration" in r]
    names = ["test", "shift/fog/1", "shift/fog/2", "shift/*/1", "shift/*/2", "shift"]
    assert {(r["dataset"], r["metric"]) for r in rows} == {
        (n, m) for n in names for m in CALIBRATED
    }
    assert {r["calibration"] for r in rows} == {"top"}
    raw, _ = evaluate({"test": fitted.apply(sets["test"])})
    for row in rows[: len(CALIBRATED)]:
        (same,) = (r for r in raw if r["metric"] == row["metric"])
        assert row == same | {"calibration": "top"}


def test_the_documents_show_raw_values_unless_they_ask_for_calibrated_ones():
    page = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "committed.py"))
    raw = {"dataset": "test", "metric": "ece", "value": 0.25, "n": 9}
    rows = [raw, raw | {"value": 0.5, "calibration": "top"}]
    seen = Run("e", "r", "ova", 0, measurements=rows)
    assert page["cell"]([seen], page["on"]("ece", "test")) == "0.250"
    assert page["cell"]([seen], page["on"]("ece", "test", calibrated=True)) == "0.500"


def test_the_report_draws_raw_values_and_lists_both():
    rows, _ = evaluate({"test": softmax_said(1)}, calibration=Top.fit(softmax_said(0)))
    seen = Run("e", "r", "softmax", 0, measurements=rows)
    (shown,) = select.values([seen], "ece", "test")
    assert shown["value"] == ece(softmax_said(1))
    listed = str(evidence.all_rows([seen]))
    assert "calibration top" in listed
    assert f"{rows[1]['value']:.5g}" in listed
    assert f"{shown['value']:.5g}" in listed


# The command


def run(monkeypatch, *args):
    monkeypatch.setattr("sys.argv", ["ova", "calibrate", *map(str, args)])
    try:
        cli.main()
    except SystemExit as end:
        return end.code or 0
    return 0


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, p in {"fit": softmax_said(0), "new": softmax_said(1)}.items():
        np.savez(f"{name}.npz", probs=p.probs, target=p.target)
        columns = {n: getattr(p, n) for n in ("target", "prediction", "confidence")}
        pd.DataFrame(columns).to_csv(f"{name}.csv", index=False)
    for name, p in {"fit": one_vs_all_said(0), "new": one_vs_all_said(1)}.items():
        write(Path(f"{name}.parquet"), p)
        np.savez(f"{name}-ova.npz", probs=p.probs, target=p.target)
    return tmp_path


@pytest.mark.parametrize(
    ("new", "fit", "method"),
    [
        ("new.npz", "fit.npz", "temperature"),
        ("new.csv", "fit.csv", "top"),
        ("new.csv", "fit.npz", "top"),
        ("new.parquet", "fit.parquet", "top"),
    ],
)
def test_the_command_chooses_measures_and_writes(files, monkeypatch, capsys, new, fit, method):
    assert run(monkeypatch, new, "--fit", fit, "--out", "a.parquet", "--json", "a.json") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{method} on {N} held-out examples: ")
    line = next(words for line in out.splitlines() if (words := line.split())[:1] == ["ece"])
    assert float(line[2]) < 0.6 * float(line[1])
    fitted, said = from_json(json.loads(Path("a.json").read_text())), read_any(Path(new))
    assert fitted.method == method
    after = read_any(Path("a.parquet"))
    assert np.array_equal(after.confidence, fitted.apply(said).confidence)
    assert f"{ece(after):.4f}" == line[2]


@EVERY
def test_the_command_knows_every_method_and_writes_csv(files, monkeypatch, method):
    args = ("new-ova.npz", "--fit", "fit-ova.npz", "--one-vs-all", "--method", method)
    assert run(monkeypatch, *args, "--out", "a.csv") == 0
    after = CALIBRATIONS[method].fit(replace(one_vs_all_said(), max_logit=None))
    expected = after.confidence(one_vs_all_said(1))
    assert read_any(Path("a.csv")).confidence == pytest.approx(expected, abs=1e-9)


def test_a_file_with_logits_is_fitted_by_what_the_other_has(files, monkeypatch):
    args = ("new-ova.npz", "--fit", "fit.parquet", "--one-vs-all", "--json", "a.json")
    assert run(monkeypatch, *args) == 0
    assert json.loads(Path("a.json").read_text())["score"] == "logit of max_p"


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("new.csv", "--fit", "new.csv"), "other examples"),
        (("new.csv", "--fit", "fit.csv", "--out", "new.csv"), "write over"),
        (("new.csv", "--fit", "fit.csv", "--out", "a.npz"), "must end in"),
        (("new.csv", "--fit", "none.csv"), "none.csv"),
        (("new.csv", "--fit", "fit.csv", "--method", "bta"), "did you mean 'beta'"),
        (("new.csv", "--fit", "fit.csv", "--method", "temperature"), "matrix of probabilities"),
        (("new.npz", "--fit", "fit.parquet"), "fitted on one-vs-all"),
    ],
)
def test_the_command_refuses_and_writes_nothing(files, monkeypatch, capsys, args, what):
    before = {p: p.read_bytes() for p in files.iterdir()}
    assert run(monkeypatch, *args, "--json", "a.json") == 2
    assert what in capsys.readouterr().err
    assert {p: p.read_bytes() for p in files.iterdir()} == before


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz"])
def test_the_command_fits_on_one_row_of_each_group(files, monkeypatch, capsys, ending):
    """The rows come in another order than their ids; the groups stay with their rows."""
    p = softmax_said(0)
    order = np.random.default_rng(1).permutation(N)
    columns = {
        name: getattr(p, name)[order] for name in ("id", "target", "confidence", "prediction")
    }
    columns["thing"] = np.array([f"thing {row // 3}" for row in order])
    table = pd.DataFrame(columns)
    write_as = {
        "csv": lambda: table.to_csv("g.csv", index=False),
        "parquet": lambda: table.to_parquet("g.parquet"),
        "npz": lambda: np.savez("g.npz", **columns),
    }
    write_as[ending]()
    args = ("new.csv", "--fit", f"g.{ending}", "--json", "a.json", "--group")
    assert run(monkeypatch, *args, "thing") == 0
    assert capsys.readouterr().out.startswith("top on 500 held-out examples: ")
    rows = one_of_each(np.arange(N) // 3)
    by_hand = Top.fit(replace(p, max_logit=None).take(rows))
    fitted = json.loads(Path("a.json").read_text())
    assert (fitted["a"], fitted["b"]) == (
        pytest.approx(by_hand.a, rel=1e-6), pytest.approx(by_hand.b, rel=1e-6))  # fmt: skip
    assert run(monkeypatch, *args, "thin") == 2
    assert "there is no column 'thin'; the columns are" in capsys.readouterr().err


def test_a_row_without_a_group_is_named(files, monkeypatch, capsys):
    columns = {"confidence": [0.5, 0.6], "prediction": [0, 1], "target": [0, 0]}
    pd.DataFrame(columns | {"thing": ["a", None]}).to_csv("g.csv", index=False)
    assert run(monkeypatch, "new.csv", "--fit", "g.csv", "--group", "thing") == 2
    assert "row 1 has no group" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (
            lambda a: Top(n=1, normalised=False, a=a, b=0.0, score="max_logit"),
            "slope a must be positive",
        ),
        (lambda a: Beta(n=1, normalised=True, a=a, b=1.0, c=0.0), "a and b must be positive"),
        (lambda a: Beta(n=1, normalised=True, a=1.0, b=a, c=0.0), "a and b must be positive"),
        (lambda a: Temperature(n=1, normalised=True, temperature=a), "temperature is positive"),
    ],
)
def test_a_calibration_that_would_turn_the_order_round_is_refused(make, says):
    make(1e-9)
    for a in (0.0, -1.0):
        with pytest.raises(BadInput, match=says):
            make(a)
