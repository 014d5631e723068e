"""Rows that are not independent count as one, whichever of them is drawn."""

from collections import Counter
from typing import Any

import numpy as np
import pytest

from ova.errors import BadInput
from ova.posthoc.independent import numbered, one_of_each


def test_one_row_of_every_group_in_order() -> None:
    groups = ["b", "a", "b", "c", "a", "b"]
    rows = one_of_each(groups).tolist()
    assert rows == sorted(rows)
    assert sorted(groups[row] for row in rows) == ["a", "b", "c"]
    assert one_of_each(np.array(groups)).tolist() == rows
    assert one_of_each(range(5)).tolist() == [0, 1, 2, 3, 4]
    assert one_of_each([]).tolist() == []


def test_every_row_of_a_group_has_the_same_chance() -> None:
    """Neither the first nor the last, nor those of a larger group: 1 of 4 each, over 2,000 seeds."""
    drawn = Counter(
        one_of_each([7, 8, 7, 7, 8, 7], seed)[k] for seed in range(2000) for k in (0, 1)
    )
    for row in (0, 2, 3, 5):
        assert drawn[row] == pytest.approx(500, abs=80)  # four standard deviations
    for row in (1, 4):
        assert drawn[row] == pytest.approx(1000, abs=90)


def test_bytes_that_differ_in_a_last_zero_are_two_groups() -> None:
    """A row of numbers as bytes ends in zeros as often as not."""
    assert numbered([b"a", b"a\x00", b"a"]).tolist() == [0, 1, 0]
    assert len(one_of_each([b"a", b"a\x00", b"a"])) == 2


BAD: dict[str, tuple[Any, str]] = {
    "none": (["a", None], "row 1 has no group; a row that stands alone is a group of its own"),
    "nan": (np.array([0.5, 1.0, np.nan]), "row 2 has no group"),
    "matrix": (np.zeros((2, 2)), "one group per row, a number or a text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_groups_are_named(name: str) -> None:
    groups, says = BAD[name]
    with pytest.raises(BadInput, match=says):
        one_of_each(groups)
