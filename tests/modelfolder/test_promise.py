"""The promise of a model folder: chosen on some rows, kept on others."""

import numpy as np
import pytest

from ova.modelfolder.promise import COVERAGE, TARGETS, choose, target
from ova.posthoc.threshold import Promise
from ova.predictions import Predictions


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
        if found.promise.accuracy is None:
            assert found.promise.coverage == COVERAGE
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
    assert choose(few, few, Promise()).promised  # the coverage, when no accuracy can be
    assert target(said(2000, 0.999, draw), 3000) == (TARGETS[0], True)


def test_an_easy_task_still_refuses_what_is_far_below_its_usual_confidence() -> None:
    draw = np.random.default_rng(2)
    found = choose(said(300, 0.9999, draw), said(2000, 0.9999, draw), Promise())
    assert found.promise.coverage == COVERAGE
    assert found.promise.accuracy is not None
    assert 0.95 <= found.answered < 1
    assert found.value > 0.5  # not: answer everything
