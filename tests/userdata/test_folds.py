"""Folds: groups whole, classes spread, sizes even, by the seed alone."""

from pathlib import Path

import numpy as np
import pytest

import made_data
from made_encoders import ENCODERS
from ova.errors import BadInput
from ova.userdata import folds
from ova.userdata.gather import Gathered, gather
from ova.userdata.request import Request


@pytest.mark.parametrize("seed", range(20))
def test_groups_are_whole_and_a_class_of_two_groups_is_in_two_folds(seed: int) -> None:
    draw = np.random.default_rng(seed)
    groups = draw.integers(0, draw.integers(2, 60), 80).tolist()
    of = {group: str(draw.integers(0, 9)) for group in groups}
    labels = [of[group] for group in groups]
    fold = folds.dealt(groups, labels, seed)
    places = {
        group: {int(k) for g, k in zip(groups, fold, strict=True) if g == group} for group in of
    }
    assert all(len(each) == 1 for each in places.values())
    for label in set(labels):
        mine = [group for group in of if of[group] == label]
        assert len(set.union(*(places[group] for group in mine))) == min(
            len(mine), folds.FOLDS, len(of)
        )
    sizes = np.bincount([min(each) for each in places.values()])
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(fold, folds.dealt(groups, labels, seed))


def test_one_row_alone_cannot_be_judged() -> None:
    with pytest.raises(BadInput, match="1 independent rows are too few"):
        folds.dealt(["a", "a"], ["x", "x"], 0)


def gathered(at: Path, per_class: int, **more: object) -> Gathered:
    if not (at / "bert").exists():
        ENCODERS["bert"](at / "bert")
    made_data.sentences(at / "topics.csv", per_class)
    given = {"frozen": True, "cross_fit": None, "encoder": at / "bert", **more}
    return gather(Request(data=at / "topics.csv", text="sentence", label="topic", **given))  # type: ignore[arg-type]


def test_the_rule_holds_nothing_out_where_rows_are_few_and_only_there(tmp_path: Path) -> None:
    few, many = gathered(tmp_path, 29), gathered(tmp_path, 30)
    assert few.folds is not None
    assert len(few.task.train) == len(few.folds.trained) == 3 * 29
    assert few.task.sources["split"] == folds.RULE
    assert any("nothing is promised" in note for note in few.notes)
    assert many.folds is None
    for other in ({"frozen": False}, {"mirror": True}, {"settings": ("members=2",)}):
        assert gathered(tmp_path, 10, **other).folds is None
        with pytest.raises(BadInput, match="--cross-fit fits a head again and again"):
            gathered(tmp_path, 10, cross_fit=True, **other)
    assert gathered(tmp_path, 10, cross_fit=False).folds is None
    assert gathered(tmp_path, 40, cross_fit=True).folds is not None
