"""Every score of the table, present and future: higher inside, the same in any blocks, kept whole."""

import json
import resource

import numpy as np
import pytest

from made_outputs import network
from ova.errors import BadInput
from ova.metrics.ranking import auroc, rank
from ova.scores import SCORES, AffineHead, Outputs, fit, load, save
from ova.scores import outputs as outputs_module

SMALL = network(K=8)
TRAIN, HELD = SMALL.inside(600), SMALL.inside(200, seed=3)
TEST, OUTSIDE = SMALL.inside(150, seed=4), SMALL.outside(150)
FITTED = fit(TRAIN, held=HELD, head=SMALL.head, names=list(SCORES))


@pytest.mark.parametrize("name", SCORES)
def test_it_is_higher_inside(name):
    inside, outside = FITTED(TEST)[name], FITTED(OUTSIDE)[name]
    assert inside.shape == (150,)
    assert np.isfinite(inside).all()
    assert np.isfinite(outside).all()
    assert auroc(rank(inside, outside)) > 0.55


@pytest.mark.parametrize("name", SCORES)
def test_blocks_and_batches_change_nothing(name, monkeypatch):
    whole = FITTED(TEST)[name]
    monkeypatch.setattr(outputs_module, "ROWS", 7)
    np.testing.assert_allclose(FITTED(TEST)[name], whole, rtol=1e-6, atol=1e-6)
    batches = (TRAIN.take(slice(a, a + 90)) for a in range(0, 600, 90))
    again = fit(batches, held=HELD, head=SMALL.head, names=[name])
    np.testing.assert_allclose(again(TEST)[name], whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", SCORES)
def test_one_row_has_the_value_it_has_among_others(name):
    alone = [FITTED(TEST.take([i]))[name][0] for i in range(5)]
    np.testing.assert_allclose(alone, FITTED(TEST)[name][:5], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", SCORES)
def test_equal_rows_have_equal_values(name):
    twice = TEST.take(np.repeat(np.arange(20), 2))
    found = FITTED(twice)[name]
    np.testing.assert_array_equal(found[::2], found[1::2])


@pytest.mark.parametrize("name", SCORES)
def test_half_precision_features_are_taken(name):
    half = fit(
        SMALL.inside(600, dtype=np.float16),
        held=SMALL.inside(200, seed=3, dtype=np.float16),
        head=SMALL.head,
        names=[name],
    )
    found = half(SMALL.inside(150, seed=4, dtype=np.float16))[name]
    exact = FITTED(TEST)[name]
    assert np.corrcoef(found, exact)[0, 1] > 0.99


@pytest.mark.parametrize("name", SCORES)
def test_a_class_without_training_rows_and_features_that_never_vary_are_borne(name):
    some = TRAIN.take(TRAIN.classes != 2)
    f = some.features.copy()
    f[:, 3] = 0.5
    fitted = fit(
        Outputs(features=f, logits=some.logits, target=some.target),
        held=HELD,
        head=SMALL.head,
        names=[name],
    )
    inside, outside = (fitted(rows)[name] for rows in (TEST.take(TEST.classes != 2), OUTSIDE))
    assert np.isfinite(inside).all()
    assert auroc(rank(inside, outside)) > 0.5


@pytest.mark.parametrize("name", SCORES)
def test_fewer_rows_than_features_are_enough(name):
    wide = network(K=4, D=200)
    fitted = fit(wide.inside(60), held=wide.inside(30, seed=3), head=wide.head, names=[name])
    inside, outside = fitted(wide.inside(40, seed=4))[name], fitted(wide.outside(40))[name]
    assert np.isfinite(inside).all()
    assert auroc(rank(inside, outside)) > 0.5


@pytest.mark.parametrize("name", SCORES)
def test_a_single_training_row_is_fitted_or_left_out_with_a_reason(name):
    fitted = fit(TRAIN.take([0]), held=HELD, head=SMALL.head)
    assert (name in fitted.names) != bool(fitted.left_out.get(name))
    assert all(np.isfinite(found).all() for found in fitted(TEST).values())


@pytest.mark.slow
def test_everything_at_two_thousand_features_and_a_thousand_classes():
    big = network(K=1000, D=2048)
    train, held = big.inside(1500), big.inside(100, seed=3)
    fitted = fit(train, held=held, head=big.head)
    assert set(fitted.names) == set(SCORES)
    inside, outside = fitted(big.inside(60, seed=4)), fitted(big.outside(60))
    assert all(np.isfinite(v).all() for v in (*inside.values(), *outside.values()))
    assert auroc(rank(inside["energy"], outside["energy"])) > 0.9


def test_what_is_kept_in_a_folder_says_the_same_to_the_last_digit(tmp_path):
    save(tmp_path / "scores", FITTED)
    again = load(tmp_path / "scores")
    assert (again.names, again.width) == (FITTED.names, 12)
    for name, found in FITTED(OUTSIDE).items():
        np.testing.assert_array_equal(again(OUTSIDE)[name], found)
    bank = TRAIN.features.nbytes
    assert (tmp_path / "scores" / "scores.safetensors").stat().st_size < 3 * bank  # shared once


@pytest.mark.parametrize("file", ["scores.json", "scores.safetensors"])
def test_a_folder_that_was_changed_is_refused(tmp_path, file):
    save(tmp_path, FITTED)
    path = tmp_path / file
    data = bytearray(path.read_bytes())
    at = data.rindex(b"1") if file == "scores.json" else len(data) - 3
    data[at] = data[at] ^ 1
    path.write_bytes(bytes(data))
    with pytest.raises(BadInput, match="changed"):
        load(tmp_path)


def test_a_folder_without_scores_or_of_another_kind_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"no scores\.json"):
        load(tmp_path)
    save(tmp_path, FITTED)
    facts = json.loads((tmp_path / "scores.json").read_text())
    (tmp_path / "scores.json").write_text(json.dumps(facts | {"version": 7}))
    with pytest.raises(BadInput, match="not of the format"):
        load(tmp_path)


def test_what_does_not_apply_says_why_and_is_refused_where_it_is_asked_for():
    alone = Outputs(features=TRAIN.features, target=TRAIN.target)
    found = fit(alone)
    assert "nearest" in found.names
    assert found.left_out["energy"] == "it needs logits"
    assert "affine head" in found.left_out["vim"]
    with pytest.raises(BadInput, match="the score energy does not apply: it needs logits"):
        fit(alone, names=["energy"])
    with pytest.raises(BadInput, match="no score called 'knm'; did you mean 'knn'"):
        fit(alone, names=["knm"])


def test_rows_that_lack_what_was_fitted_are_refused():
    with pytest.raises(BadInput, match="needs features of every row"):
        fit(TRAIN, names=["nearest"])(Outputs(logits=TEST.logits))
    with pytest.raises(BadInput, match="features of 11 numbers; the scores were fitted on 12"):
        fit(TRAIN, names=["nearest"])(Outputs(features=TEST.features[:, 1:]))


def test_the_head_is_found_from_features_and_logits():
    fitted = fit(TRAIN, held=HELD)
    assert fitted.head is not None
    np.testing.assert_allclose(fitted.head.weight, SMALL.head.weight, atol=1e-5)
    np.testing.assert_allclose(fitted.head.bias, SMALL.head.bias, atol=1e-5)
    assert {"vim", "fdbd", "react", "scale"} <= set(fitted.names)


def test_a_head_of_distances_is_not_taken_for_affine():
    f = TRAIN.features
    z = -np.linalg.norm(f[:, None] - 2 * SMALL.head.weight[None], axis=2)
    fitted = fit(Outputs(features=f, logits=z, target=TRAIN.target), held=HELD)
    assert fitted.head is None
    assert {"vim", "fdbd", "react", "scale", "nnguide"} <= fitted.left_out.keys()
    few = fit(TRAIN.take(slice(20)), held=HELD)  # too few rows to tell
    assert few.head is None


def test_logits_follow_from_features_and_a_head():
    plain = Outputs(features=TRAIN.features, target=TRAIN.target)
    fitted = fit(plain, held=HELD, head=SMALL.head)
    found = fitted(Outputs(features=TEST.features))
    assert set(found) == set(SCORES)
    np.testing.assert_allclose(found["energy"], FITTED(TEST)["energy"], rtol=1e-4)


def test_shaping_is_left_out_for_signed_features_unless_asked_for():
    signed = Outputs(features=TRAIN.features - 0.5, logits=TRAIN.logits, target=TRAIN.target)
    left = fit(signed, held=HELD, head=SMALL.head).left_out
    assert left.keys() == {"react", "scale"}
    assert "Ask for it by name" in left["scale"]
    assert fit(signed, head=SMALL.head, names=["scale"]).names == ("scale",)


def test_rows_of_none_of_the_classes_are_passed_over():
    mixed = Outputs(
        features=np.concatenate([TRAIN.features, 100 + OUTSIDE.features]),
        logits=np.concatenate([TRAIN.logits, OUTSIDE.logits]),
        target=np.concatenate([TRAIN.target, OUTSIDE.target]),
    )
    for name in ("mds", "knn", "cosine"):
        found = fit(mixed, held=HELD, head=SMALL.head, names=[name])(TEST)[name]
        np.testing.assert_allclose(found, FITTED(TEST)[name], rtol=1e-6)
    with pytest.raises(BadInput, match="no training rows of a class"):
        fit(OUTSIDE)


def test_without_held_out_rows_some_training_rows_are_kept_back():
    fitted = fit(TRAIN, head=SMALL.head, names=["energy_nearest", "sirc"])
    assert fitted.names == ("energy_nearest", "sirc")
    bank = len(fitted.fitted["nearest"].row)  # type: ignore[attr-defined]
    assert bank == 540
    assert 599 not in fitted.fitted["nearest"].row  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"features": [[np.nan]]}, "row 0: features has a value that is not finite"),
        ({"features": [1.0, 2.0]}, "features must be a matrix of numbers"),
        ({"features": [[1.0]], "logits": [[1.0, 2.0], [1.0, 2.0]]}, "different numbers of rows"),
        ({}, "outputs need features, logits or probabilities"),
    ],
)
def test_broken_outputs_are_refused(bad, message):
    with pytest.raises(BadInput, match=message):
        Outputs(**bad)


def test_a_head_of_wrong_shape_is_refused():
    with pytest.raises(BadInput, match="weights K x D and K biases"):
        AffineHead(np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(BadInput, match="do not fit a head of 12"):
        fit(Outputs(features=TRAIN.features[:, 1:], target=TRAIN.target), head=SMALL.head)


def test_the_numbers_of_training_rows_lead_back_to_them():
    fitted = fit(TRAIN, names=["nearest"])
    _, rows = fitted.fitted["nearest"].search(TRAIN.take([5, 17]))  # type: ignore[attr-defined]
    assert rows[:, 0].tolist() == [5, 17]


def test_what_one_fit_left_on_rows_is_not_taken_for_another_fit():
    for k in (0, 1):  # of one block, so the rows themselves are looked at
        some = fit(TRAIN.take(slice(300 * k, 300 * k + 300)), names=["nearest"])
        alone = Outputs(features=TEST.features)
        np.testing.assert_array_equal(some(TEST)["nearest"], some(alone)["nearest"])
    assert not TEST.shared
    assert not TEST.values


@pytest.mark.parametrize("sign", [1, -1])
def test_energy_and_nearest_feature_are_joined_only_where_both_rise_inside(sign):
    rng = np.random.default_rng(0)
    f = rng.normal(size=(2000, 4)) + 3 * np.eye(4)[np.arange(2000) % 4]
    near = -np.abs(f - 3 * np.eye(4)[np.arange(2000) % 4]).sum(1, keepdims=True)
    rows = Outputs(features=f, logits=f + sign * 5 * near, target=np.arange(2000) % 4)
    fitted = fit(rows.take(slice(0, 300)), held=rows.take(slice(300, 2000)))
    assert ("energy_nearest" in fitted.names) == (sign > 0)
    if sign < 0:
        assert "the energy falls" in fitted.left_out["energy_nearest"]
        asked = fit(
            rows.take(slice(0, 300)), held=rows.take(slice(300, 2000)), names=["energy_nearest"]
        )
        assert asked.names == ("energy_nearest",)


def test_a_full_disk_is_an_error_of_the_system_and_leaves_nothing(tmp_path):
    size = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, size[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            save(tmp_path, FITTED)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, size)
    assert not list(tmp_path.iterdir())
