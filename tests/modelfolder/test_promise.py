"""The promise of a model folder: chosen on some rows, kept on others."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.modelfolder.folder import load
from ova.modelfolder.promise import COVERAGE, TARGETS, choose, outcome, target
from ova.modelfolder.train import train
from ova.posthoc.calibration import Top
from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.predictions import NONE, NONE_LABEL, Predictions, read
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request


def said(n: int, accuracy: float, draw: np.random.Generator) -> Predictions:
    """An honest model of two classes: right as often as it says."""
    c = np.clip(draw.beta(4 * accuracy, 4 * (1 - accuracy), n), 0.5, 1)
    right = draw.random(n) < c
    return Predictions(
        id=np.arange(n),
        target=np.zeros(n, np.int32),
        prediction=(~right).astype(np.int32),
        confidence=c,
        classes=2,
        normalised=False,
    )


@pytest.mark.parametrize("accuracy", [0.99, 0.9, 0.7])
def test_the_promise_is_kept_though_its_accuracy_was_chosen_on_other_rows(accuracy: float) -> None:
    draw = np.random.default_rng(0)
    truth, broken, promised = said(200_000, accuracy, draw), 0, 0
    for _ in range(100):
        found = choose(said(300, accuracy, draw), said(450, accuracy, draw), Promise())
        assert math.isfinite(found.value)  # something is always refused
        if found.promise.accuracy is None:
            continue
        above = truth.confidence > found.value
        promised += 1
        broken += bool(
            truth.correct[above].mean() < found.promise.accuracy
            or above.mean() < (found.promise.coverage or 0)
        )
    assert broken <= 0.05 * 100 + 7  # three standard deviations above one in twenty
    assert promised > 50 or accuracy < 0.8  # and it is not kept by promising nothing


def test_what_the_user_asks_for_is_promised_or_nothing_is_answered() -> None:
    draw = np.random.default_rng(1)
    few = said(20, 0.9, draw)
    assert not choose(few, few, Promise(accuracy=0.99)).promised
    assert choose(few, few, Promise(coverage=0.8)).promised
    assert target(said(2000, 0.999, draw), 3000, 0.95) == TARGETS[0]


@pytest.mark.parametrize("n", [1, 2, 5, 12, 16, 20, 36, 50, 52, 110, 200])
@pytest.mark.parametrize("wrong", [0, 0.1, 0.5, 1])
def test_unasked_something_is_always_refused_and_little_of_what_is_usual(
    n: int, wrong: float
) -> None:
    """A score far below that of every row seen is of something else: it is never answered."""
    rows = ranked(n, range(n - int(wrong * n) + 1, n + 1))
    for seen in (rows, ranked(30)):
        found = choose(seen, rows, Promise())
        assert not found.answers([-1e9]).any()
        assert found.answered > 0
        if found.promise.accuracy is None:
            assert found.answered >= COVERAGE
            assert found.promised == (found.promise.coverage is not None)


def test_where_no_accuracy_can_be_had_the_next_lower_one_is_tried() -> None:
    """As for the penguins: 50 rows, two wrong; 0.95 and 0.9 cannot be promised, 0.8 can."""
    rows = ranked(50, [40, 45])
    assert target(ranked(80), 50, 0.975) == 0.95
    assert not choose(rows, rows, Promise(accuracy=0.95)).promised
    assert not choose(rows, rows, Promise(accuracy=0.9, certainty=0.99375)).promised
    found = choose(ranked(80), rows, Promise())
    assert found.promise == Promise(accuracy=0.8)
    assert (found.answered, found.accuracy) == (48 / 50, 46 / 48)


def test_where_nothing_can_be_promised_that_is_said_and_the_lowest_scores_are_refused() -> None:
    rows = ranked(20, [10, 20])
    found = choose(rows, rows, Promise())
    assert (found.value, found.answered) == (1.0, 19 / 20)
    assert not found.promised
    assert str(found) == (
        "answer above 1: nothing can be promised, what scores lowest is refused all the same "
        "(20 examples, 95.0 % answered, 94.7 % of them right)"
    )
    assert Threshold.from_json(found.to_json()) == found
    assert choose(rows, replace(rows, confidence=np.ones(20)), Promise()).answered == 1


def test_an_easy_task_still_refuses_what_is_far_below_its_usual_confidence() -> None:
    draw = np.random.default_rng(2)
    found = choose(said(300, 0.9999, draw), said(2000, 0.9999, draw), Promise())
    assert found.promise.coverage == COVERAGE
    assert found.promise.accuracy is not None
    assert 0.95 <= found.answered < 1
    assert found.value > 0.5  # not: answer everything


def ranked(n: int, wrong: Sequence[int] = ()) -> Predictions:
    """Confidences n, ..., 1 of ranks 1, ..., n; the answers of the ranks named are wrong."""
    target = np.zeros(n, np.int32)
    target[np.array(wrong, int) - 1] = 1
    return Predictions(
        id=np.arange(n),
        target=target,
        prediction=np.zeros(n, np.int32),
        confidence=np.arange(n, 0, -1.0),
        classes=2,
        normalised=False,
    )


# Enough for 0.9 (36 right ones at half of delta), not for 0.95 (72); 36 to 40 of 50 are answered.
MIDDLING = ranked(50, range(41, 51))


def test_which_accuracy_is_promised_is_decided_on_the_other_rows() -> None:
    """The rows that carry the promise would choose 0.99, or nothing; they are not asked."""
    perfect, good = ranked(1000), ranked(1000, range(5, 1001, 12))
    assert choose(perfect, perfect, Promise()).promise.accuracy == 0.99
    assert choose(good, good, Promise()).promise.accuracy == 0.8
    assert choose(good, perfect, Promise()).promise.accuracy == 0.8
    assert choose(perfect, good, Promise()).promise.accuracy == 0.8  # the first that can be had
    bad = ranked(1000, range(1, 1001, 2))
    assert choose(perfect, bad, Promise()).promise == Promise(coverage=COVERAGE)


def test_an_accuracy_that_was_chosen_has_half_of_delta() -> None:
    """0.9 ** 36 <= 0.025 < 0.9 ** 35, and one row more that is refused; both promises say 0.95."""
    found = choose(MIDDLING, ranked(37), Promise())
    assert found.promise == Promise(accuracy=0.9, certainty=0.95)
    assert (found.value, found.n) == (1.0, 37)
    assert choose(MIDDLING, ranked(36), Promise()).promise == Promise(accuracy=0.8)
    loose = choose(MIDDLING, ranked(30), Promise(certainty=0.9))  # half of 0.1
    assert loose.promise == Promise(accuracy=0.9, certainty=0.9)
    assert choose(MIDDLING, ranked(29), Promise(certainty=0.9)).promise.accuracy == 0.8


def test_the_lower_accuracies_share_a_quarter_of_delta() -> None:
    """One lower: 0.8 ** 20 <= 0.0125 < 0.8 ** 19. Four: 0.8 ** 26 <= 0.003125 < 0.8 ** 25."""
    assert choose(MIDDLING, ranked(21), Promise()).promise.accuracy == 0.8
    assert choose(MIDDLING, ranked(20), Promise()).promise.accuracy is None
    sure = ranked(1000)
    assert target(sure, 27, 0.975) == 0.99
    assert choose(sure, ranked(27), Promise()).promise.accuracy == 0.8
    assert choose(sure, ranked(26), Promise()).promise.accuracy is None


def test_a_coverage_told_in_its_place_has_a_quarter_of_delta() -> None:
    """The 1,922nd of 2,000 at a quarter of delta; half would have been content with the 1,920th."""
    assert binom.ppf([0.975, 0.9875], 2000, COVERAGE).tolist() == [1919, 1921]
    found = choose(MIDDLING, ranked(2000, range(1, 2001)), Promise())
    assert (found.value, found.answered) == (78.0, 1922 / 2000)
    assert found.promise == Promise(coverage=COVERAGE, certainty=0.95)


def test_an_easy_task_takes_the_highest_value_that_keeps_both() -> None:
    """Of 2,000 right answers the 1,922nd and all above; 0.99 alone would answer everything."""
    found = choose(ranked(400), ranked(2000), Promise(), np.array([70.0, 78.0, 81.0, 1500.0]))
    assert found.promise == Promise(accuracy=0.99, coverage=COVERAGE)
    assert (found.value, found.answered, found.accuracy) == (78.0, 1922 / 2000, 1.0)
    assert (found.outside, found.leak) == (4, 0.5)
    late = choose(ranked(400), ranked(2000, [1930]), Promise())  # an error below it changes nothing
    assert (late.value, late.accuracy) == (78.0, 1.0)


def test_an_easy_task_that_is_not_so_easy_keeps_its_accuracy() -> None:
    """Two errors of 216 leave 0.98 its certificate, but only for answers that are too few for both."""
    rows = ranked(216, [208, 209])
    found = choose(ranked(144), rows, Promise())
    assert found.promise == Promise(accuracy=0.98)
    assert (found.value, found.answered) == (10.0, 206 / 216)  # the highest for 95 % of these rows
    assert not choose(ranked(144), rows, Promise(accuracy=0.98, coverage=COVERAGE)).promised


def test_what_is_asked_for_has_all_of_delta() -> None:
    assert choose(MIDDLING, ranked(29), Promise(accuracy=0.9)).promised
    assert not choose(MIDDLING, ranked(28), Promise(accuracy=0.9)).promised
    assert choose(MIDDLING, ranked(22), Promise(coverage=0.8)).value == 1.0
    outside = np.linspace(0, 1, 29)
    assert choose(MIDDLING, ranked(5), Promise(leak=0.1), outside).promised
    assert not choose(MIDDLING, ranked(5), Promise(leak=0.1), outside[:28]).promised
    strict = choose(MIDDLING, ranked(44), Promise(accuracy=0.9, certainty=0.99))
    assert strict.promised
    assert strict.promise.certainty == 0.99


def test_the_accuracy_to_promise_lets_half_be_answered() -> None:
    def chosen(n: int, answered: int) -> float:
        return target(ranked(n, range(answered + 1, n + 1)), n, 0.95)

    assert chosen(60, 29) == 0.8  # of 60 at least 14 right ones prove 0.8, 29 prove 0.9
    assert chosen(60, 30) == 0.9  # and these 30 are half of them
    assert chosen(58, 29) == 0.9
    assert target(ranked(20, [20]), 20, 0.95) == 0.8  # 19 of 20 are just enough
    assert target(ranked(20, [19, 20]), 20, 0.95) == 0.8
    # Thirty rows stand for as many as the promise will rest on.
    assert target(ranked(30), 30, 0.975) == 0.8
    assert target(ranked(30), 44, 0.975) == 0.8
    assert target(ranked(30), 60, 0.975) == 0.9
    assert target(ranked(30), 5, 0.975) == 0.8
    # Where nothing lets enough be answered, what lets most be; at a higher certainty less.
    assert target(ranked(40, range(19, 41)), 40, 0.95) == 0.8


def test_a_network_that_knows_its_rows_by_heart_promises_nothing_about_others(
    tmp_path: Path,
) -> None:
    """Random labels: every number of the model must come from rows that it was not trained on."""
    draw = np.random.default_rng(0)
    names = [f"x{k}" for k in range(20)]
    rows = [[*draw.normal(size=20), "ab"[draw.integers(2)]] for _ in range(1000)]
    data = made_data.write_csv(tmp_path / "x.csv", [*names, "label"], rows)
    how = ("epochs=40", "batch_size=64", "keep=last", "dropout=0", "weight_decay=0", "lr=0.003")
    gathered, machine = gather(Request(data=data, settings=how)), Machine(accelerator="cpu")
    for _ in train(launch(machine), gathered, tmp_path / "model", machine, Promise(), "max_p"):
        pass
    model = load(tmp_path / "model")
    x = gathered.task.prepare(gathered.task.train.x)  # type: ignore[attr-defined]
    learned = model.net(x).argmax(1) == gathered.task.train.y
    assert learned.float().mean() > 0.99
    assert model.threshold.promise == Promise(coverage=COVERAGE)
    assert model.threshold.n == 150
    assert model.threshold.accuracy == pytest.approx(0.5, abs=0.15)
    held = read(tmp_path / "model/run/predictions/calibration.parquet")
    assert isinstance(model.calibration, Top)
    assert model.calibration.confidence(held).mean() == pytest.approx(0.5, abs=0.15)


def test_rare_classes_and_copies_reach_the_promise_and_its_sentence(tmp_path: Path) -> None:
    """Every row of the calibration part is another input; those of no trained class are wrong."""
    draw = np.random.default_rng(1)
    rows = [[*draw.normal(3 * (k % 2), 1, 2).round(3), "ab"[k % 2]] for k in range(400)]
    rows += [[*draw.normal(1.5, 1, 2).round(3), f"rare {k}"] for k in range(60)]
    rows = [row for row in rows for _ in range(3)]
    data = made_data.write_csv(tmp_path / "x.csv", ["x", "y", "label"], rows)
    gathered = gather(Request(data=data, settings=("epochs=3", "batch_size=64")))
    out, machine = tmp_path / "model", Machine(accelerator="cpu")
    for _ in train(launch(machine), gathered, out, machine, Promise(coverage=0.9), "max_p"):
        pass
    held = gathered.task.evaluations["calibration"]()
    inputs = {row.tobytes() for row in held.x.numpy()}  # type: ignore[attr-defined]
    found = load(out).threshold
    assert found.n == len(held) == len(inputs) == 69
    lost = int((held.y == NONE).sum())
    assert lost > 3
    assert found.none == lost
    assert f"(69 examples, {lost} of them of none of the classes, " in str(found)
    p = read(out / "run/predictions/calibration.parquet")
    assert not p.correct[p.target == NONE].any()
    assert found.accuracy == p.correct[found.answers(p.confidence)].mean()
    assert (out / "report.html").read_text().count(f"{lost} of them of none of the classes") == 1


def test_a_model_of_few_rows_refuses_nonsense_and_never_answers_below_chance_silently(
    tmp_path: Path,
) -> None:
    data, out = made_data.table(tmp_path / "few.csv", 20), tmp_path / "model"
    machine = Machine(accelerator="cpu")
    gathered = gather(Request(data=data, settings=("epochs=40", "batch_size=16")))
    for _ in train(launch(machine), gathered, out, machine, Promise()):
        pass
    header = ["length", "size", "colour"]
    odd = made_data.write_csv(tmp_path / "odd.csv", header, [[900, 1.9e9, "red"], [0, 0, "?"]])
    usual = CliRunner().invoke(app, ["predict", str(out), str(odd)])
    assert usual.stdout.count(NONE_LABEL) == 2
    assert "below chance" not in usual.stderr
    forced = CliRunner().invoke(app, ["predict", str(out), str(odd), "--threshold", "0"])
    assert NONE_LABEL not in forced.stdout
    assert "2 answers have a confidence below chance (0.333)" in forced.stderr


def test_rows_of_the_classes_and_of_none_in_one_set_have_a_share_that_is_right() -> None:
    p = ranked(4, [2])
    p.target[3] = NONE
    found = fit_threshold((np.arange(60.0), np.ones(60)), 0.9)
    assert outcome([p], found) == "100.0 % of 4 answered, 50.0 % of them right"
    assert outcome([p.take([3])], found) == "100.0 % of 1 answered"
