"""A model that is tried again on labelled rows."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.again import again
from ova.modelfolder.answer import answers
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.predictions import NONE_LABEL
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("again")
    gathered = gather(Request(data=made_data.clouds(at / "clouds.csv"), settings=("epochs=4",)))
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gathered, at / "model", machine, Promise(accuracy=0.8)):
        pass
    return at


def test_the_counts_are_those_of_its_answers(folder: Path) -> None:
    data = folder / "clouds.csv"
    model = load(str(folder / "model"))
    found, labels = again(model, data), whole(data).columns["label"]
    said = [answer.label for answer in answers(model, [str(data)])]
    kept = [label != NONE_LABEL for label in said]
    right = [a == b for a, b, k in zip(said, labels, kept, strict=True) if k]
    assert found.lines[1] == (
        f"all: {np.mean(kept):.1%} of {len(said)} answered, {np.mean(right):.1%} of them right"
    ).replace("%", " %")
    assert found.kept
    assert [c.n for c in found.by_class.classes] == [600, 600, 600]


def test_rows_unlike_those_it_was_fitted_on_speak_against_its_promise(
    folder: Path, tmp_path: Path
) -> None:
    frame = whole(folder / "clouds.csv").columns
    mixed = dict(zip("abc", "bca", strict=True))
    rows = [
        [x, y, mixed[k]] for x, y, k in zip(frame["x"], frame["y"], frame["label"], strict=True)
    ]
    rows += [[0, 0, "new"], ["", "", "a"], [1, 1, ""]]
    data = made_data.write_csv(tmp_path / "drifted.csv", ["x", "y", "kind"], rows)
    told = CliRunner().invoke(
        app, ["evaluate", str(folder / "model"), str(data), "--label", "kind"]
    )
    assert told.exit_code == 1
    assert "1801 rows, 2 more could not be used" in told.output
    assert "warning: the promised accuracy of 0.8 does not look kept" in told.output
    assert "of classes that it does not know:" in told.output
    assert "mean of the classes" in told.output


def test_what_is_no_data_of_its_kind_is_named(folder: Path, tmp_path: Path) -> None:
    model = load(folder / "model")
    with pytest.raises(BadInput, match="no data of the kind of this model"):
        again(model, made_data.pictures(tmp_path / "pictures"))
    other = made_data.write_csv(tmp_path / "o.csv", ["x", "y", "label"], [[1, 2, "q"]])
    with pytest.raises(BadInput, match="no label is a class of the model: a, b, c"):
        again(model, other)
    told = CliRunner().invoke(app, ["evaluate", str(folder / "model")])
    assert isinstance(told.exception, BadInput)
