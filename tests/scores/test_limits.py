"""Outputs at the edge of what numbers can hold: every score is right there, or one sentence says why not."""

from dataclasses import replace

import numpy as np
import pytest

from made_outputs import network
from ova.errors import BadInput
from ova.scores import SCORES, AffineHead, Outputs, fit

NET = network(K=8)
TRAIN, HELD, TEST = NET.inside(300), NET.inside(100, seed=3), NET.inside(40, seed=4)


def scored(change, name):
    """The score where training, held-out and test rows are all changed alike; None if it is left out."""
    fitted = fit(change(TRAIN), held=change(HELD), head=None)
    return fitted(change(TEST)).get(name)


CHANGES = {
    "zero features": lambda rows: replace(rows, features=rows.features * 0),
    "equal features": lambda rows: replace(rows, features=rows.features * 0 + 3),
    "features twice": lambda rows: replace(rows, features=np.tile(rows.features, 2)),
    "one feature": lambda rows: replace(rows, features=rows.features[:, :1]),
    "tiny features": lambda rows: replace(rows, features=rows.features * np.float32(1e-42)),
    "large features": lambda rows: replace(rows, features=rows.features * np.float32(1e37)),
    "equal logits": lambda rows: replace(rows, logits=rows.logits * 0),
    "sure logits": lambda rows: replace(rows, logits=rows.logits * 1e4),
    "sure one-vs-all": lambda rows: replace(rows, logits=rows.logits * 1e4, normalised=False),
    "largest logits": lambda rows: replace(rows, logits=np.sign(rows.logits) * np.float32(3e38)),
    "one class": lambda rows: replace(rows, logits=rows.logits[:, :1], target=rows.target * 0),
    "one answer": lambda rows: replace(
        rows, logits=rows.logits[:, :1], target=rows.target * 0, normalised=False
    ),
    "far classes": lambda rows: Outputs(features=rows.features, target=rows.target * 300_000_000),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("change", CHANGES)
def test_every_score_is_a_number_or_left_out(change):
    rows = CHANGES[change]
    fitted = fit(rows(TRAIN), held=rows(HELD))
    for name, found in fitted(rows(TEST)).items():
        # 1 - p that is 0 in a double has no logarithm; then the input is inside as surely as can be.
        ends = (found == np.inf) if name == "any" else np.zeros(len(found), bool)
        assert np.isfinite(found[~ends]).all(), name
    assert all(fitted.left_out.get(name) for name in SCORES if name not in fitted.names)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("size", [0.0, 1e37])
def test_a_test_row_of_no_or_of_enormous_length_has_a_value(name, size):
    fitted = fit(TRAIN, held=HELD, head=NET.head, names=[name])
    far = replace(TEST, features=TEST.features * np.float32(size))
    assert np.isfinite(fitted(far)[name]).all()


def test_numbers_of_classes_do_not_cost_memory():
    far = fit(CHANGES["far classes"](TRAIN), names=["mds", "cosine", "knn"])(TEST)
    near = fit(Outputs(features=TRAIN.features, target=TRAIN.target), names=list(far))(TEST)
    for name, found in far.items():
        np.testing.assert_allclose(found, near[name], rtol=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_no_rows_have_no_values(name):
    fitted = fit(TRAIN, held=HELD, head=NET.head, names=[name])
    assert fitted(TEST.take(slice(0, 0)))[name].shape == (0,)
    assert fitted(iter(()))[name].shape == (0,)


def test_one_class_has_no_boundary():
    one = CHANGES["one class"]
    head = AffineHead(NET.head.weight[:1], NET.head.bias[:1])
    with pytest.raises(BadInput, match="fdbd does not apply: one class has no boundary"):
        fit(one(TRAIN), head=head, names=["fdbd"])


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"features": np.full((2, 3), 1e39)}, "row 0: features has a value that single precision"),
        ({"logits": np.array([[0.0, 1], [1e300, 0]])}, "row 1: logits has a value that single"),
        ({"logits": np.array([[0.0, -np.inf]])}, "row 0: logits has a value that is not finite"),
        ({"features": np.array([[np.inf]], np.float16)}, "features has a value that is not finite"),
        (
            {"logits": np.zeros((3, 0))},
            r"logits must be a matrix of numbers, not .* shape \(3, 0\)",
        ),
        ({"features": np.zeros((3, 0))}, r"features must be .* shape \(3, 0\)"),
    ],
)
def test_what_no_score_can_compute_with_is_refused(rows, message):
    with pytest.raises(BadInput, match=message):
        Outputs(**rows)


@pytest.mark.parametrize("name", ["max_p", "any", "entropy", "gen", "sirc"])
@pytest.mark.parametrize(
    "bad",
    [
        {"probs": np.tile([-0.1, 1.1], (40, 1))},
        {"probs": np.tile([0.9, 0.9], (40, 1))},
        {"log_p": np.tile([0.7, 0.1], (40, 1))},
    ],
)
def test_what_are_no_probabilities_is_refused_by_every_score_of_them(name, bad):
    train = Outputs(features=TRAIN.features, logits=TRAIN.logits[:, :2], target=TRAIN.target % 2)
    fitted = fit(train.take(slice(250)), held=train.take(slice(250, 300)), names=[name])
    with pytest.raises(BadInput, match="probabilit"):
        fitted(Outputs(features=TEST.features, **bad))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_head_that_is_not_finite_is_refused(value):
    with pytest.raises(BadInput, match="weight of an affine head has a value that is not finite"):
        AffineHead(np.full((2, 3), value), np.zeros(2))
    with pytest.raises(BadInput, match="bias of an affine head has a value that is not finite"):
        AffineHead(np.zeros((2, 3)), np.full(2, value))


def test_a_head_of_other_classes_than_the_logits_is_refused():
    head = AffineHead(NET.head.weight[:5], NET.head.bias[:5])
    with pytest.raises(BadInput, match="logits of 8 classes do not fit a head of 5"):
        fit(TRAIN, held=HELD, head=head)
    fitted = fit(TRAIN, held=HELD, head=NET.head)
    with pytest.raises(BadInput, match="logits of 5 classes do not fit a head of 8"):
        fitted(replace(TEST, logits=TEST.logits[:, :5], target=None))
