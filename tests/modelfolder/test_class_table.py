"""What a model does for each class, counted and said."""

import numpy as np

from ova.modelfolder.class_table import MACRO, SHOWN, lines, per_class, rows_of
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import Predictions

CLASSES = ("a", "b", "c", "d")


def said(target: list[int], prediction: list[int], confidence: list[float]) -> Predictions:
    return Predictions(
        id=np.arange(len(target)),
        target=np.array(target, np.int32),
        prediction=np.array(prediction, np.int32),
        confidence=np.array(confidence),
        classes=len(CLASSES),
        normalised=False,
    )


TEST = said([0, 0, 0, 0, 1, 1, 2], [0, 0, 0, 1, 1, 0, 2], [0.9, 0.9, 0.1, 0.9, 0.9, 0.2, 0.3])
OTHER = said([0], [0], [0.9])
THRESHOLD = Threshold(value=0.5, promise=Promise(), n=7, answered=4 / 7)


def test_every_class_has_its_rows_and_counts_once_in_the_mean() -> None:
    found = per_class(TEST, [OTHER, TEST], THRESHOLD, CLASSES)
    assert list(rows_of(found)) == [
        ("a", 4, "75.0 %", "75.0 %", "66.7 %"),
        ("b", 2, "50.0 %", "50.0 %", "100.0 %"),
        ("c", 1, "100.0 %", "0.0 %", "-"),
        ("d", 0, "-", "-", "-"),
        (MACRO, 7, "75.0 %", "41.7 %", "83.3 %"),
    ]


def test_classes_that_no_held_out_row_is_answered_with_are_named() -> None:
    found = per_class(TEST, [OTHER, TEST], THRESHOLD, CLASSES)
    assert found.never == ("c", "d")
    assert [*lines(found, "these rows")][-1] == (
        "warning: no held-out row is ever answered with 'c', 'd'; more rows of them would help"
    )
    heard = said([2, 3], [2, 3], [0.9, 0.9])
    assert per_class(TEST, [heard, TEST], THRESHOLD, CLASSES).never == ()


def test_of_many_classes_the_worst_are_printed() -> None:
    names = tuple(f"k{i}" for i in range(30))
    p = said([*range(30)] * 2, [*range(30)] * 2, [0.9] * 30 + [0.9] * 15 + [0.1] * 15)
    told = [*lines(per_class(p, [p], THRESHOLD, names), "these rows")]
    assert told[0] == "by class, on these rows, the worst 20 of 30:"
    shown = {line.split()[0] for line in told[2:-1]}
    assert len(shown) == SHOWN
    assert {f"k{i}" for i in range(15, 30)} <= shown
