"""Words, categories and gaps of data frames in OneVsAllClassifier: the same as one-hot columns made by hand."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import load_iris
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_score

from ova.errors import BadInput
from ova.nn.formulations import DEFAULT, FORMULATIONS
from ova.training.estimator import OneVsAllClassifier
from ova.training.scorers import roc_auc_ovr
from ova.training.worded import encoded, learned, names_of, worded

pd = pytest.importorskip("pandas")
QUICK: dict[str, Any] = {"hidden": (16,), "epochs": 20, "random_state": 0}
HUES = ["red", "blue", " green", None]


def table(n: int = 300) -> tuple[Any, NDArray[Any]]:
    """The label follows from a word and a number, both of which are sometimes missing."""
    draw = np.random.default_rng(0)
    hue, length = draw.integers(4, size=n), draw.normal(size=n)
    frame = pd.DataFrame(
        {
            "hue": pd.Series([HUES[k] for k in hue], dtype=object),
            "length": np.where(draw.random(n) < 0.1, np.nan, length),
            "count": draw.integers(5, size=n),
            "written": pd.Series([f"{x:.3f}" if x > -1 else "?" for x in length], dtype=object),
        }
    )
    return frame, np.array(["a", "b", "c"])[np.where(length > 0, 0, 1 + (hue > 1))]


def by_hand(frame: Any) -> NDArray[np.float64]:
    """The columns as numbers, cell by cell."""
    rows = []
    for hue, length, count, written in frame.itertuples(index=False):
        word = "" if hue is None or hue != hue else hue.strip()  # noqa: PLR0124  NaN
        place = [float(word == known) for known in ("", "blue", "green", "red")]
        rows.append([*place, length, count, float("nan") if written == "?" else float(written)])
    return np.array(rows, float)


def test_words_are_one_hot_and_numbers_as_they_come() -> None:
    frame, _ = table()
    found = worded(frame)
    assert found is not None
    columns = learned(found)
    names = ["hue=", "hue=blue", "hue=green", "hue=red", "length", "count", "written"]
    assert names_of(columns) == names
    np.testing.assert_array_equal(encoded(found, columns), by_hand(frame))


def test_the_network_sees_words_as_0_and_1_and_standardised_numbers() -> None:
    frame, y = table()
    model = OneVsAllClassifier(**QUICK).fit(frame, y)
    assert model.score(frame, y) > 0.9
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == list(frame)
    x = by_hand(frame)
    np.testing.assert_array_equal(model.encode(frame), x)
    gaps = np.isnan(x)
    standard = np.where(gaps, np.nanmedian(x, axis=0), x)
    standard[:, 4:] = (standard[:, 4:] - standard[:, 4:].mean(0)) / standard[:, 4:].std(0)
    import torch

    with torch.inference_mode():
        z = model.network_(torch.from_numpy(np.hstack([standard, gaps[:, [4, 6]]]))).double()
    wanted = FORMULATIONS[DEFAULT].probs(z).numpy()
    np.testing.assert_allclose(model.predict_proba(frame), wanted, atol=1e-12)


def test_new_words_are_none_and_rows_do_not_depend_on_each_other() -> None:
    frame, y = table()
    model = OneVsAllClassifier(**QUICK).fit(frame, y)
    strange = frame.head(3).assign(hue=["violet", "red", "violet"])
    assert (model.encode(strange)[:, :4].sum(1) == [0, 1, 0]).all()
    alone = [model.predict_proba(strange.iloc[[k]])[0] for k in range(3)]
    np.testing.assert_allclose(model.predict_proba(strange), alone, atol=1e-12)


def test_a_word_that_only_held_out_rows_have_is_none_of_them() -> None:
    """The promise is then about what a new word does, not about weights that nothing has moved."""
    frame, y = table()
    kept = np.random.RandomState(0).permutation(len(y))[: round(0.3 * len(y))]
    frame.loc[kept[0], "hue"] = "violet"
    model = OneVsAllClassifier(coverage=0.5, **QUICK).fit(frame, y)
    violet, unheard = (frame.iloc[[3]].assign(hue=[word]) for word in ("violet", "unheard"))
    assert (model.encode(violet) != model.encode(unheard)).any()
    assert (model.predict_proba(violet) == model.predict_proba(unheard)).all()


@pytest.mark.parametrize("library", ["polars", "pyarrow", "categories"])
def test_other_data_frames_say_the_same(library: str) -> None:
    frame, y = table()
    model = OneVsAllClassifier(**QUICK).fit(frame, y)
    if library == "categories":
        other: Any = frame.assign(hue=frame["hue"].astype("category"))
    else:
        pytest.importorskip(library)
        import pyarrow as pa

        other = pa.Table.from_pandas(frame, preserve_index=False)
        if library == "polars":
            import polars as pl

            other = pl.from_arrow(other)
    again = OneVsAllClassifier(**QUICK).fit(other, y)
    np.testing.assert_array_equal(again.predict_proba(other), model.predict_proba(frame))


def test_words_go_into_the_onnx_file(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    frame, y = table()
    model = OneVsAllClassifier(coverage=0.6, **QUICK).fit(frame, y)
    path = tmp_path / "model.onnx"
    model.export(path)
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    new = frame.assign(hue="violet")
    said = session.run(["label"], {"input": model.encode(new)})[0]
    labels = np.where(said < 0, model.reject_label_, model.classes_.astype(object)[said])
    assert (labels == model.predict(new)).all()
    assert '"hue=red"' in session.get_modelmeta().custom_metadata_map["ova.columns"]


WRONG: dict[str, tuple[Any, str]] = {
    "many": ({"hue": [f"w{k}" for k in range(300)]}, "'hue' is text with 300 different values"),
    "typo": ({"written": ["1.5"] * 299 + ["1.5 cm"]}, "row 300: column 'written' is '1.5 cm'"),
    "mixed": ({"hue": ["red", 1, None] * 100}, "not columns with one kind of value each"),
}


@pytest.mark.parametrize(("changed", "says"), WRONG.values(), ids=WRONG)
def test_cells_that_cannot_be_used_are_named(changed: Any, says: str) -> None:
    frame, y = table()
    cells = {name: pd.Series(values, dtype=object) for name, values in changed.items()}
    with pytest.raises(BadInput, match=says):
        OneVsAllClassifier(**QUICK).fit(frame.assign(**cells), y)


def test_another_kind_of_table_than_the_one_of_fit_is_named() -> None:
    frame, y = table()
    model = OneVsAllClassifier(**QUICK).fit(frame, y)
    with pytest.raises(BadInput, match="fitted on a data frame; give one with the columns 'hue'"):
        model.predict(by_hand(frame))
    numbers = OneVsAllClassifier(**QUICK).fit(frame[["length", "count"]], y)
    with pytest.raises(BadInput, match="the model was fitted on numbers"):
        numbers.predict(frame[["hue", "count"]])
    with pytest.raises(BadInput, match="no column 'hue'; the columns are 'colour', 'length'"):
        model.predict(frame.rename(columns={"hue": "colour"}))
    turned = frame[list(frame)[::-1]].assign(more="word")
    np.testing.assert_array_equal(model.predict_proba(turned), model.predict_proba(frame))


def test_a_frame_of_numbers_is_what_it_was() -> None:
    X, y = load_iris(return_X_y=True)
    names = ["a", "b", "c", "d"]
    framed = OneVsAllClassifier(**QUICK).fit(pd.DataFrame(X, columns=names), y)
    plain = OneVsAllClassifier(**QUICK).fit(X, y).predict_proba(X)
    assert (framed.predict_proba(pd.DataFrame(X, columns=names)) == plain).all()


@pytest.mark.parametrize("sparse", [csr_array, csr_matrix])
def test_sparse_input_says_what_would_work(sparse: Any) -> None:
    X, y = load_iris(return_X_y=True)
    model = OneVsAllClassifier(**QUICK)
    with pytest.raises(BadInput, match=r"X is sparse.*TruncatedSVD.*X\.toarray\(\)"):
        model.fit(sparse(X), y)
    model.fit(X, y)
    with pytest.raises(BadInput, match="X is sparse"):
        model.predict(sparse(X))


def test_the_scorer_of_areas_wants_no_sum_of_one() -> None:
    """Oracle: pairs of rows, counted; for probabilities that sum to one also scikit-learn."""
    X, y = load_iris(return_X_y=True)
    model = OneVsAllClassifier(**(QUICK | {"epochs": 2})).fit(X, y)
    p, areas = model.predict_proba(X), []
    for k in range(3):
        pairs = [(a > b) + (a == b) / 2 for a in p[y == k, k] for b in p[y != k, k]]
        areas.append(np.mean(pairs))
    assert roc_auc_ovr(model, X, y) == pytest.approx(np.mean(areas), abs=1e-12)
    shared = OneVsAllClassifier(normalised=True, **QUICK).fit(X, y)
    wanted = roc_auc_score(y, shared.predict_proba(X), multi_class="ovr")
    assert roc_auc_ovr(shared, X, y) == pytest.approx(wanted, abs=1e-12)
    assert cross_val_score(model, X, y, scoring=roc_auc_ovr, cv=2).min() > 0.5
    assert roc_auc_ovr(shared, X[y > 0], y[y > 0]) > 0.9  # a class that has no rows has no area
    assert np.isnan(roc_auc_ovr(shared, X[:9], y[:9]))
