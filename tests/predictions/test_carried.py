"""Features and scores travel with the predictions: through files, chunks, parts and choices of rows."""

from dataclasses import replace

import numpy as np
import pytest

from ova.errors import BadInput
from ova.predictions import Predictions, merge, read, read_chunks, write
from ova.scores import scores_of


def carrying(n=40, dtype=np.float16):
    r = np.random.default_rng(0)
    p = r.dirichlet(np.ones(3), n)
    said = Predictions.from_probs(p, r.integers(0, 3, n), normalised=True, keep_probs=True)
    scores = {"knn": r.normal(size=n), "energy": r.normal(size=n).astype(np.float32)}
    return replace(said, features=r.normal(size=(n, 5)).astype(dtype), scores=scores)


def same(a, b):
    np.testing.assert_array_equal(a.features, b.features)
    assert a.features.dtype == b.features.dtype
    assert a.scores.keys() == b.scores.keys()
    for name in a.scores:
        np.testing.assert_array_equal(a.scores[name], b.scores[name])
        assert a.scores[name].dtype == b.scores[name].dtype


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_they_come_back_from_a_file_and_from_its_chunks(tmp_path, dtype):
    said = carrying(dtype=dtype)
    write(tmp_path / "p.parquet", said)
    same(read(tmp_path / "p.parquet"), said)
    same(merge(list(read_chunks(tmp_path / "p.parquet"))), said)
    lean = read(tmp_path / "p.parquet", probs=False)
    assert lean.features is None
    assert lean.probs is None
    assert lean.scores.keys() == said.scores.keys()


def test_parts_are_merged_and_a_part_that_lacks_them_is_named():
    said = carrying()
    parts = [said.take(np.arange(i, 40, 3)) for i in range(3)]
    same(merge(parts), said)
    with pytest.raises(BadInput, match="part 1 differs in having knn"):
        merge([parts[0], replace(parts[1], scores={"energy": parts[1].scores["energy"]})])


def test_a_score_of_another_length_is_refused():
    with pytest.raises(BadInput, match="knn has 3 rows, id has 40"):
        replace(carrying(), scores={"knn": np.zeros(3)})


def test_scores_that_are_carried_stand_beside_those_of_the_columns_in_the_order_of_the_table():
    said = carrying()
    found = scores_of(
        replace(said, scores={"mine": np.ones(40), **said.scores, "max_p": np.ones(40)})
    )
    assert list(found) == ["max_p", "any", "entropy", "energy", "knn", "mine"]
    np.testing.assert_array_equal(found["max_p"], said.confidence)
    np.testing.assert_array_equal(found["energy"], said.scores["energy"])
