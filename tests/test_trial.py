"""The trial's statistics against slow or known answers, and its choice by what judges nothing."""

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import stats

from ova.metrics.calibration import expected_error, reliability, signed_gaps
from ova.predictions import Predictions, write
from ova.training.run_folder import predictions_path

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def trial() -> ModuleType:
    return imported("trial")


@pytest.fixture(scope="module")
def verdicts() -> ModuleType:
    return imported("trial_verdicts")


def imported(name: str) -> ModuleType:
    if not BENCHMARKS.exists():
        pytest.skip("installed without its benchmarks")
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_holm_against_its_definition(verdicts: ModuleType) -> None:
    p = np.random.default_rng(0).random(20) ** 3
    corrected = verdicts.holm(p)
    for level in (0.01, 0.05, 0.2):
        rejected, left = np.zeros(20, bool), list(range(20))
        while left:  # the smallest of those left against level / how many are left
            least = min(left, key=lambda i: p[i])
            if p[least] > level / len(left):
                break
            rejected[least] = True
            left.remove(least)
        assert (corrected <= level).tolist() == rejected.tolist()


def judged(verdicts: ModuleType, values: np.ndarray, rows: np.ndarray, excess: float = 0.0):
    """A formulation whose every cell has these values over seeds, and these over redrawn rows."""
    cells = len(verdicts.HIGHER)
    one = np.repeat(values[:, None], cells, 1)
    redrawn = one[:, None, :] + rows[None, :, None]
    return verdicts.Judged("", one, redrawn, np.full(cells, excess), 10**9)


def test_where_only_seeds_matter_the_difference_is_students(verdicts: ModuleType) -> None:
    a, b = np.array([0.91, 0.94, 0.92, 0.95]), np.array([0.90, 0.92, 0.92, 0.91])
    still = np.zeros(50)
    found = verdicts.difference(judged(verdicts, a, still), judged(verdicts, b, still))
    np.testing.assert_allclose(found.p, stats.ttest_rel(a, b).pvalue)
    assert found.better[0] == pytest.approx((a - b).mean())  # more accuracy is better
    assert found.better[1] == pytest.approx((b - a).mean())  # more calibration error is worse


def test_rows_make_a_difference_less_sure(verdicts: ModuleType) -> None:
    a, b = np.array([0.95, 0.951, 0.952]), np.array([0.90, 0.901, 0.9015])
    moving = 0.05 * np.random.default_rng(0).standard_normal(200)
    sure = verdicts.difference(judged(verdicts, a, 0 * moving), judged(verdicts, b, 0 * moving))
    less = verdicts.difference(judged(verdicts, a, moving), judged(verdicts, b, 0 * moving))
    assert (sure.p < 0.01).all()
    assert (less.p > 0.2).all()


def test_seeds_and_rows_together_are_never_surer_than_they_are(verdicts: ModuleType) -> None:
    """Three seeds move a cell three times as far as the rows do: at most 5 % are false."""
    draw, false = np.random.default_rng(0), 0
    for _ in range(500):
        rows = 0.5 * draw.standard_normal(100)
        a, b = draw.standard_normal(3), draw.standard_normal(3) + 0.5 * draw.standard_normal()
        found = verdicts.difference(judged(verdicts, a, rows), judged(verdicts, b, 0 * rows))
        false += found.p[0] <= 0.05
    assert false / 500 <= 0.05


def test_one_seed_has_no_verdict_and_no_interval(verdicts: ModuleType) -> None:
    one, still = np.array([0.9]), np.zeros(20)
    results = {
        "good": judged(verdicts, one, still),
        "bad": judged(verdicts, one - 0.5, still),
    }
    assert not verdicts.verdicts(results, "good", ["bad"]).any()
    assert verdicts.clearly_beaten(results) == []
    assert "| 0.900 |" in verdicts.report(results, ["good"])


def test_a_calibration_error_has_room_for_what_noise_adds_to_it(verdicts: ModuleType) -> None:
    """What the worse one may be too high by is taken off the difference, on either side."""
    rows = 0.01 * np.random.default_rng(0).standard_normal(100)
    low, high = np.array([0.02, 0.021, 0.022]), np.array([0.07, 0.071, 0.072])
    for excess, clear in ((0.0, True), (0.02, True), (0.04, False), (0.06, False)):
        worse = judged(verdicts, high, rows, excess)
        better = judged(verdicts, low, 0 * rows, 1.0)
        for found in (verdicts.difference(better, worse), verdicts.difference(worse, better)):
            assert (found.p[1] <= 0.05) == clear


def test_an_ece_is_the_usual_one_and_is_drawn_again_by_its_rows(verdicts: ModuleType) -> None:
    draw = np.random.default_rng(0)
    p = [
        Predictions.from_probs(
            draw.dirichlet(np.ones(3), 60), draw.integers(3, size=60), normalised=True
        )
        for _ in range(4)
    ]
    gaps = [signed_gaps(each) for each in p]
    scores = (draw.random(60), draw.random(30))
    run = verdicts.Run(
        (gaps[0], gaps[1]), [(gaps[2], gaps[3]), (gaps[3], gaps[2])], p[0].correct, [scores, scores]
    )
    ece = [expected_error(reliability(each)) for each in p]
    both = (ece[2] + ece[3]) / 2
    np.testing.assert_allclose(
        run.cells(np.arange(60), np.arange(30))[1:5], [ece[0], ece[1], both, both]
    )
    few = np.arange(7)
    assert run.cells(few, few)[1] == pytest.approx(gaps[0].values[few].mean())
    both = (gaps[2].excess + gaps[3].excess) / 2
    np.testing.assert_allclose(run.excess[1:5], [gaps[0].excess, gaps[1].excess, both, both])
    assert not run.excess[[0, 5, 6, 7, 8]].any()
    values, redrawn = verdicts.cells(run)
    assert redrawn.shape == (verdicts.DRAWS, len(values))
    assert redrawn.std(0).min() > 0


def test_nobody_is_ahead_of_an_equal(verdicts: ModuleType) -> None:
    draw, false = np.random.default_rng(0), 0
    still = np.zeros(20)
    for _ in range(200):
        results = {n: judged(verdicts, draw.standard_normal(3), still) for n in "abc"}
        false += verdicts.verdicts(results, "a", ["b", "c"]).any()
    assert false / 200 < 0.08  # all five cells are one here, so Holm is careful


def test_clearly_beaten_and_reported(verdicts: ModuleType) -> None:
    rows = 1e-4 * np.random.default_rng(0).standard_normal(50)
    noise = np.array([0.0, 0.001, -0.001])
    results = {n: judged(verdicts, at + noise, rows) for n, at in (("good", 0.9), ("bad", 0.5))}
    # In cells where less is better the low one leads, in the two others the high one.
    assert verdicts.clearly_beaten(results) == ["good"]
    table = verdicts.report(results, ["good"])
    assert "| `good` | +--+- |" in table
    assert "0.900 ± 0.002" in table


def said(inside: bool, better: float, seed: int) -> Predictions:
    draw = np.random.default_rng(seed)
    p = draw.dirichlet(np.ones(3), 60) * 0.2
    p[:, 0] += 0.8 * better if inside else 0.1
    y = np.zeros(60, int) if inside else np.full(60, -1)
    return Predictions.from_probs(p / p.sum(1, keepdims=True), y, normalised=True)


def test_the_choice_looks_at_validation_alone(
    trial: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    better = {"base": 0.5, "slow": 1.0, "fast": 0.3}  # `head` diverges
    arena = trial.ARENAS["digits-8"]

    def carried_out(recipe, place):
        setting = next(
            s
            for s in trial.SETTINGS
            if arena.recipe("ova", s, trial.CHOOSES, shift=False) == recipe
        )
        if setting not in better:
            return None
        folder = tmp_path / setting
        write(predictions_path(folder, "validation"), said(True, better[setting], 0))
        write(predictions_path(folder, "validation/9"), said(False, 0, 1))
        return folder  # no test and no judging set is there

    monkeypatch.setattr(trial, "carried_out", carried_out)
    site = trial.Site(trial.Place(tmp_path), tmp_path / "ledgers")
    choice = trial.choose(arena, "ova", site)
    assert choice.setting == "slow"
    assert choice.tries["head"] is None
    assert choice.score in choice.scores
    # Another machine, without the run folders, knows the same.
    monkeypatch.setattr(trial, "carried_out", None)
    assert trial.choose(arena, "ova", site) == choice


def test_every_formulation_has_the_same_tries_and_fresh_seeds(trial: ModuleType) -> None:
    for arena in trial.ARENAS.values():
        seen = {
            f: [arena.recipe(f, s, trial.CHOOSES, shift=False) for s in trial.SETTINGS]
            for f in (*trial.OURS, *trial.OTHERS)
        }
        assert {len(set(tries)) for tries in seen.values()} == {4}
        assert trial.CHOOSES not in range(trial.FIRST, trial.FIRST + arena.seeds)
        assert arena.seeds >= 3
