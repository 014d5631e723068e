"""A promise anew: what is fitted on new rows is what the rows say, and all else of the model stays."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import read_object
from ova.modelfolder.again import again, answered
from ova.modelfolder.folder import load
from ova.modelfolder.renew import renewed, save
from ova.modelfolder.train import train
from ova.posthoc.calibration import Top
from ova.posthoc.per_class import EachClass
from ova.posthoc.threshold import Promise, Threshold, fit_threshold
from ova.predictions import NONE
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import whole


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("renew")
    gathered = gather(Request(data=made_data.clouds(at / "clouds.csv"), settings=("epochs=4",)))
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gathered, at / "model", machine, Promise(accuracy=0.8)):
        pass
    return at


def rows_of(
    place: Path, at: Path, change: dict[str, str] | None = None, twice: bool = False
) -> Path:
    """A third of the rows, some with another label, each twice."""
    lines = (place / "clouds.csv").read_text().splitlines()
    kept = [line.rpartition(",") for line in lines[1::3]]
    new = [f"{x},{(change or {}).get(y, y)}" for x, _, y in kept]
    at.write_text("\n".join([lines[0], *new, *(new if twice else [])]) + "\n")
    return at


def test_the_threshold_is_what_the_rows_alone_say(place: Path, tmp_path: Path) -> None:
    model, data = load(place / "model"), rows_of(place, tmp_path / "more.csv")
    found = renewed(model, data, "", Promise(accuracy=0.9, certainty=0.9))
    assert isinstance(found.threshold, Threshold)
    judged = answered(model, data, "").judged
    pair = (judged.confidence, judged.correct)
    alone = fit_threshold(pair, 0.9, 0.9)
    assert found.threshold.value == alone.value
    assert found.threshold.n == len(whole(data).columns["label"])
    # The slow way: of all values the lowest above which an exact test of the errors passes.
    c, right = pair
    above = c > found.threshold.value
    assert right[above].mean() >= 0.9


def test_all_but_promise_and_confidence_stays_and_the_model_is_whole(
    place: Path, tmp_path: Path
) -> None:
    model, data = load(place / "model"), rows_of(place, tmp_path / "more.csv")
    before = {p: p.read_bytes() for p in (place / "model").glob("*") if p.is_file()}
    found = renewed(model, data, "", Promise(coverage=0.9))
    save(model, place / "model", tmp_path / "new", found)
    assert {p: p.read_bytes() for p in before} == before
    new = load(tmp_path / "new")
    assert new.threshold == found.threshold
    assert new.facts["renewed"] == [{"rows": found.source["rows"], "from": "more.csv"}]
    old, now = (read_object(at / "model.json") for at in (place / "model", tmp_path / "new"))
    same = {*old} - {"threshold", "parts", "sha256"}
    assert {k: old[k] for k in same} == {k: now[k] for k in same}
    changed = {n for n in old["parts"] if old["parts"][n] != now["parts"][n]}
    assert changed <= {"calibration.json", "held.json"}
    assert again(new, data).kept
    save(new, tmp_path / "new", tmp_path / "newer", renewed(new, data, "", Promise()))
    assert len(load(tmp_path / "newer").facts["renewed"]) == 2


def test_copies_count_once_and_without_a_wish_the_promise_is_the_models_own(
    place: Path, tmp_path: Path
) -> None:
    model = load(place / "model")
    once = renewed(model, rows_of(place, tmp_path / "one.csv"), "", Promise())
    twice = renewed(model, rows_of(place, tmp_path / "two.csv", twice=True), "", Promise())
    assert once.threshold == twice.threshold
    assert once.threshold.promise.accuracy == 0.8
    assert any("which count once each" in note for note in twice.notes)
    assert isinstance(once.calibration, Top)


def test_rows_of_none_are_wrong_wherever_they_are_answered_and_carry_a_leak(
    place: Path, tmp_path: Path
) -> None:
    model = load(place / "model")
    label = str(model.classes[0])
    data = rows_of(place, tmp_path / "more.csv", {label: "stranger"})
    found = renewed(model, data, "", Promise(leak=0.2))
    judged = answered(model, data, "").judged
    strange = judged.confidence[judged.target == NONE]
    assert len(strange) > 0
    assert found.threshold.answers(strange, np.zeros(len(strange), int)).mean() <= 0.2
    assert any("does not know" in note for note in found.notes)
    with pytest.raises(BadInput, match="no row is one"):
        renewed(model, rows_of(place, tmp_path / "known.csv"), "", Promise(leak=0.2))


def test_a_promise_for_every_class_stays_one(place: Path, tmp_path: Path) -> None:
    model, data = load(place / "model"), rows_of(place, tmp_path / "more.csv")
    each = renewed(model, data, "", EachClass(accuracy=0.7))
    save(model, place / "model", tmp_path / "each", each)
    again_each = renewed(load(tmp_path / "each"), data, "", Promise())
    assert again_each.threshold == each.threshold


def test_from_the_command_line_and_nothing_is_written_where_it_fails(
    place: Path, tmp_path: Path
) -> None:
    data, out = rows_of(place, tmp_path / "more.csv"), tmp_path / "out"
    args = ["promise", str(place / "model"), str(data), "--out", str(out)]
    for wrong in ([*args[:2], str(tmp_path / "missing.csv"), *args[3:]], [*args, "--label", "y"]):
        assert isinstance(CliRunner().invoke(app, wrong).exception, BadInput | OSError)
        assert not out.exists()
    inside = [*args[:4], str(place / "model")]
    assert isinstance(CliRunner().invoke(app, inside).exception, BadInput)
    said = CliRunner().invoke(app, args)
    assert said.exit_code == 0, said.output
    assert "accuracy >= 0.8" in said.output
    kept = json.loads((out / "model.json").read_text())
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").write_text("mine")
    full = CliRunner().invoke(app, [*args[:4], str(other)])
    assert isinstance(full.exception, BadInput)
    assert [p.name for p in other.iterdir()] == ["notes.txt"]
    assert CliRunner().invoke(app, args).exit_code == 0  # the same command again
    assert json.loads((out / "model.json").read_text()) == kept
