"""`ova.train` and `ova.load`: the engine of the commands, for data in memory, as objects that show themselves."""

import gc
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from typer.testing import CliRunner

import made_data
import ova
from narrowing import there
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import read_lines, sha256
from ova.modelfolder.trained import TrainedModel
from ova.report import runs
from ova.report.figures import FIGURES

QUICK: dict[str, Any] = {"epochs": 4, "batch_size": 16, "accelerator": "cpu", "verbose": False}
HOSTILE = '<script>alert("&")</script>'


@pytest.fixture(scope="module")
def sentences(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    frame = pd.read_csv(made_data.sentences(tmp_path_factory.mktemp("data") / "topics.csv"))
    return frame.replace({"topic": {"weather, today": HOSTILE, 7: "7"}})


@pytest.fixture(scope="module")
def texts(sentences: pd.DataFrame) -> TrainedModel:
    return ova.train(sentences, label="topic", text="sentence", coverage=0.5, **QUICK)


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_data.crowd(tmp_path_factory.mktemp("crowd") / "crowd.csv", per_class=150)


@pytest.fixture(scope="module")
def points(crowd: Path) -> TrainedModel:
    frame = pl.read_csv(crowd)
    return ova.train(frame, none="other", score="nearest", coverage=0.7, epochs=6, verbose=False)


@pytest.mark.slow
def test_the_folder_is_that_of_the_command(crowd: Path, tmp_path: Path) -> None:
    """The same file by both ways: the same weights, threshold and answers."""
    args = ["train", str(crowd), "-o", str(tmp_path / "a"), "--none", "other", "--accuracy", "0.8"]
    done = CliRunner().invoke(app, [*args, "--set", "epochs=2", "--accelerator", "cpu"])
    assert done.exit_code == 0, done.output
    model = ova.train(
        str(crowd),
        none="other",
        accuracy=0.8,
        out=tmp_path / "b",
        **QUICK | {"epochs": 2, "batch_size": 16},
    )
    command = ["predict", str(tmp_path / "a"), str(crowd), "-o", str(tmp_path / "a.jsonl")]
    assert CliRunner().invoke(app, command).exit_code == 0
    assert model.folder == tmp_path / "b"
    said = [(row["confidence"], row["score"]) for row in read_lines(tmp_path / "a.jsonl")]
    assert said == [(row.confidence, row.score) for row in model.predict(crowd)]


def test_every_shape_of_input_gets_the_same_answers(
    texts: TrainedModel, sentences: pd.DataFrame, tmp_path: Path
) -> None:
    cells = sentences["sentence"].tolist()[:20]
    (tmp_path / "new.txt").write_text("\n".join(cells))
    want = list(texts.predict(cells))
    assert len(want) == 20
    assert [row.input for row in want] == cells
    shapes = (sentences[:20], pl.DataFrame({"sentence": cells}), sentences["sentence"][:20])
    for shape in (*shapes, {"sentence": cells}, np.array(cells), tmp_path / "new.txt"):
        assert list(texts.predict(shape)) == want
    p = texts.predict_proba(cells)
    assert p.shape == (20, 3)
    guess = [row.best_guess for row in want]
    assert [texts.classes[k] for k in p.argmax(1)] == guess


def test_rows_of_numbers_come_in_the_order_of_the_columns(
    points: TrainedModel, crowd: Path
) -> None:
    frame = pd.read_csv(crowd)[["x", "y"]]
    want = points.predict(frame)
    assert list(points.predict(frame.to_numpy())) == list(want)
    assert list(points.predict(frame[["y", "x"]])) == list(want)
    assert len(points.predict(np.zeros((0, 2)))) == 0


def test_a_refusal_says_why_and_what_is_nearest(points: TrainedModel) -> None:
    inside, far, bad = points.predict({"x": [-4.0, 50.0, None], "y": [0.0, -50.0, None]})
    assert (inside.label, inside.why) == ("a", None)
    assert far.label is None
    assert far.best_guess in points.classes
    assert re.fullmatch(r"nearest -[\d.]+ is not above -[\d.]+", there(far.why))
    assert (bad.label, bad.confidence, bad.why) == (None, None, "every column is empty")
    assert "(a)" in there(inside.nearest)
    assert np.isnan(points.predict_proba({"x": [None], "y": [None]})).all()


def test_another_threshold_is_one_of_confidences(points: TrainedModel) -> None:
    said = points.predict([[0.0, 1.0], [-4.0, 0.0]], threshold=1.0)
    assert [row.label for row in said] == [None, None]
    assert there(said[0].why).endswith("is not above 1")
    assert there(said[0].why).startswith("confidence ")
    with pytest.raises(BadInput, match="give a number from 0 to 1"):
        points.predict([[0.0, 1.0]], threshold=2)


def test_answers_are_a_table(points: TrainedModel) -> None:
    said = points.predict([[-4.0, 0.0], [50.0, -50.0]])
    assert repr(said) == "2 inputs: 1 answered, 1 refused"
    columns = said.to_dict()
    assert columns["label"] == ["a", None]
    frame = said.to_pandas()
    assert list(frame.columns) == list(columns)
    assert frame["score"].tolist() == columns["score"]


def test_a_class_of_any_name_is_text_in_a_notebook(
    texts: TrainedModel, sentences: pd.DataFrame
) -> None:
    said, measured = texts.predict(sentences[:60]), texts.evaluate(sentences)
    assert HOSTILE in texts.classes
    for shown in (texts, said, measured):
        page = shown._repr_html_()
        assert "<script" not in page
        assert "\n" not in repr(shown)
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;" in texts._repr_html_()
    assert "&lt;script&gt;" in said._repr_html_()


@pytest.mark.slow
def test_the_line_is_honest_about_the_promise(texts: TrainedModel, crowd: Path) -> None:
    assert str(texts.threshold) in repr(texts)
    assert "coverage >= 0.5 with certainty 0.95" in repr(texts)
    few = ova.train(crowd, accuracy=0.999999, score="max_p", **QUICK)
    assert "answer nothing: accuracy >= 0.999999" in repr(few)
    (row,) = few.predict([[0.0, 1.0]])
    assert there(row.why).startswith("nothing is answered: accuracy >= ")


@pytest.mark.slow
def test_without_out_the_folder_lives_as_long_as_the_object(sentences: pd.DataFrame) -> None:
    model = ova.train(sentences, label="topic", text="sentence", **QUICK | {"epochs": 1})
    folder = model.folder
    assert (folder / "report.html").is_file()
    del model
    gc.collect()
    assert not folder.exists()
    assert not folder.parent.exists()


@pytest.mark.slow
def test_saved_loaded_and_trained_again(
    texts: TrainedModel, sentences: pd.DataFrame, tmp_path: Path
) -> None:
    place = texts.save(tmp_path / "kept")
    again = ova.load(str(place))
    assert list(again.predict(sentences)) == list(texts.predict(sentences))
    assert again.evaluate(sentences).to_dict() == texts.evaluate(sentences).to_dict()
    with pytest.raises(BadInput, match="is not empty"):
        texts.save(place)
    begun = sha256(place / "weights.safetensors")
    asked = {"label": "topic", "text": "sentence", "out": place, **QUICK}
    stricter = ova.train(sentences, coverage=0.9, **asked)  # goes on where training ended
    assert sha256(place / "weights.safetensors") == begun
    assert stricter.threshold.promise.coverage == 0.9
    with pytest.raises(BadInput, match=r"was trained on other data.* name another out="):
        ova.train(sentences[:-1], **asked)


@pytest.mark.slow
def test_a_training_that_broke_off_goes_on(
    sentences: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = {"label": "topic", "text": "sentence", "coverage": 0.5, **QUICK}
    whole = ova.train(sentences, out=tmp_path / "whole", **asked)

    def broken(work: Any, name: str, console: Any) -> Any:
        for event in work:
            if getattr(event, "row", None) and event.epoch == 2:
                raise KeyboardInterrupt
        raise AssertionError("it ended")

    with monkeypatch.context() as patch:
        patch.setattr("ova.modelfolder.door.show", broken)
        with pytest.raises(KeyboardInterrupt):
            ova.train(sentences, out=tmp_path / "broken", **asked)
    again = ova.train(sentences, out=tmp_path / "broken", **asked)
    weights = [sha256(model.folder / "weights.safetensors") for model in (whole, again)]
    assert weights[0] == weights[1]
    assert json.loads((again.folder / "manifest.json").read_text())["resumed"]


def test_measured_on_rows_that_it_has_not_seen(points: TrainedModel, tmp_path: Path) -> None:
    """Oracle: the rows one by one."""
    test = pd.read_csv(made_data.crowd(tmp_path / "test.csv", per_class=30))
    far = np.random.default_rng(0).uniform(-40, 40, (50, 2))
    measured = points.evaluate(test, outside=far)
    said, strange = points.predict(test), points.predict(far)
    known = test["label"] != "other"
    best = pd.Series([row.best_guess for row in said])
    assert measured.value("accuracy") == pytest.approx((best == test["label"])[known].mean())
    label = pd.Series([row.label for row in said])
    answered = label.notna()
    assert measured.value("answered", score="nearest") == pytest.approx(answered.mean())
    right = (label == test["label"])[answered].mean()
    assert measured.value("answered_accuracy", score="nearest") == pytest.approx(right)
    leak = np.mean([row.label is not None for row in strange])
    assert measured.value("answered", "ood/outside", score="nearest") == pytest.approx(leak)
    assert 0.8 < there(measured.value("auroc", "ood/outside")) <= 1
    assert "test accuracy" in repr(measured)
    lists = points.evaluate(test[["x", "y"]].to_numpy().tolist(), test["label"].tolist())
    assert lists.value("accuracy") == measured.value("accuracy")


def test_pictures_of_a_model_are_those_of_its_run(points: TrainedModel) -> None:
    (found,) = runs.read([points.folder / "run"])
    want = FIGURES["reliability"].rows([found])
    assert ova.plot.reliability(points).data.values == want
    assert want


@pytest.mark.slow
def test_exported(points: TrainedModel, tmp_path: Path) -> None:
    assert points.export(str(tmp_path / "m.onnx")).stat().st_size > 1000
    with pytest.raises(BadInput, match=r"ends with \.onnx"):
        points.export(points.folder / "weights.safetensors")


@pytest.mark.slow
def test_images(tmp_path: Path) -> None:
    folder = made_data.pictures(tmp_path / "colours", per_class=25)
    model = ova.train(folder, **QUICK)
    one = folder / "red" / "0.png"
    assert list(model.predict(str(one))) == list(model.predict([one]))
    assert len(model.predict(folder)) == 75
    right = [row.best_guess for row in model.predict(folder)]
    names = [Path(row.input).parent.name for row in model.predict(folder)]
    share = np.mean([a == b for a, b in zip(right, names, strict=True)])
    assert model.evaluate(folder).value("accuracy") == pytest.approx(share)
    with pytest.raises(BadInput, match="give the paths of files or folders"):
        model.predict(np.zeros((2, 2)))
    with pytest.raises(BadInput, match=r"^out .* is inside .*; name another folder$"):
        ova.train(folder, out=folder / "model")


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no such column": ({"label": "no"}, r"^the data: there is no column 'no' \(label= names it\)"),
    "an option that is none": ({"label": "topic", "epoch": 3}, "no option 'epoch'.*epochs"),
    "a value that is none": ({"label": "topic", "epochs": "many"}, "epochs = 'many'"),
    "a promise of nothing": ({"label": "topic", "accuracy": 2}, "accuracy"),
    "a score that is none": ({"label": "topic", "score": "max"}, "no score called 'max'"),
    "a leak without outsiders": ({"label": "topic", "leak": 0.1}, "outside= DATA"),
    "words of too many kinds": ({"label": "topic", "text": ""}, "say text='sentence'"),
    "a seed that is none": ({"label": "topic", "seed": "a"}, "seed is a whole number, not 'a'"),
    "a flag that is none": ({"label": "topic", "skip_bad": 1}, "skip_bad is True or False, not 1"),
    "other labels": (
        {"label": "topic", "test": {"sentence": ["a"], "topic": ["b"]}},
        "^the test: none of its labels is among those of the data",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_done_has_its_sentence(
    name: str, sentences: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options, said = BAD[name]
    with pytest.raises(BadInput, match=said) as error:
        ova.train(sentences, **{"text": "sentence", **options})
    assert "--" not in str(error.value)
    assert not list(tmp_path.iterdir())  # nothing is left over


def test_what_cannot_be_asked_has_its_sentence(texts: TrainedModel, points: TrainedModel) -> None:
    for inputs, said in (
        ("a text", r"one text comes in a list"),
        ({"other": ["a"]}, "there is no column 'sentence'.*'other'"),
        (3, "the inputs: this is 3"),
    ):
        with pytest.raises(BadInput, match=said):
            texts.predict(inputs)
    (row,) = texts.predict([3])
    assert row.why == "3 is no text"
    with pytest.raises(BadInput, match="rows have 3 numbers, the model looks at 2: 'x', 'y'"):
        points.predict([[1, 2, 3]])
    with pytest.raises(BadInput, match="no_model is not a model"):
        ova.load("no_model")
    with pytest.raises(BadInput, match="from the path of its folder, not from 3"):
        ova.load(3)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="/dev/null"):
        points.save("/dev/null/model")


def test_names_of_columns_and_labels_may_be_numbers(crowd: Path) -> None:
    """As those of a data frame without a header are."""
    frame = pd.read_csv(crowd)
    number = {"a": 0, "b": 1, "c": 2, "other": -1}
    plain = pd.DataFrame({0: frame["x"], 1: frame["y"], 2: frame["label"].map(number)})
    model = ova.train(plain, label=2, none=-1, score="max_p", **QUICK)
    assert model.classes == ("0", "1", "2")
    assert len(model.predict(plain)) == len(plain)


@pytest.mark.slow
def test_nothing_is_said_unless_somebody_looks(
    sentences: pd.DataFrame, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = {"label": "topic", "text": "sentence", **QUICK, "epochs": 1}
    ova.train(sentences, **asked | {"verbose": None})
    assert capfd.readouterr() == ("", "")
    ova.train(sentences, **asked | {"verbose": True})
    assert "model: report" in capfd.readouterr().err
