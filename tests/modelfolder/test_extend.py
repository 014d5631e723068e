"""A model with other classes: what stays is as it was, what is new is learned, what is bad is refused."""

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner, Result

import made_circles
import made_data
import ova
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.answer import answers, as_outputs, decide
from ova.modelfolder.extend.change import change
from ova.modelfolder.extend.stored import stored
from ova.modelfolder.folder import load
from ova.modelfolder.train import train
from ova.posthoc.certificates import accuracy_values
from ova.posthoc.threshold import Promise, Threshold
from ova.predictions import NONE, NONE_LABEL
from ova.training.engine import Machine, launch
from ova.training.together import MeanOfP
from ova.userdata.gather import gather
from ova.userdata.request import Request

KNOWN = ("a", "b", "c")


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("extend")
    made_circles.model(place, KNOWN, Promise(accuracy=0.9))
    found = [[x, y, f"new: {n}"] for x, y, n in made_circles.rows("d", 80, 1)]
    found += [[x, y, "none"] for x, y, n in made_circles.rows("f", 60, 2)]
    found += [[x, y, ""] for x, y, _ in made_circles.rows("e", 5, 3)]
    made_data.write_csv(place / "labelled.csv", ["x", "y", "label"], found)
    told = run(
        place / "model", place / "labelled.csv", "--data", place / "known.csv", "-o", place / "m2"
    )
    assert told.exit_code == 0, told.output
    (place / "told.txt").write_text(told.output)
    return place


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["extend", *map(str, args)])


def said(model: Path, names: Sequence[str], tmp_path: Path) -> list[tuple[str | None, str]]:
    """What a model answers to fresh rows of some classes, with the class of each."""
    data = made_circles.table(tmp_path / "fresh.csv", names, 50, seed=9)
    true = [n for n in names for _ in range(50)]
    return list(zip((a.label for a in answers(load(model), [str(data)])), true, strict=True))


def test_the_rows_of_the_head_that_stay_are_as_they_were_bit_for_bit(at: Path) -> None:
    before, after = load(at / "model"), load(at / "m2")
    assert after.classes == ("a", "b", "c", "d")
    x = before.preparation.example(50, torch.Generator().manual_seed(0))
    (f, z), (g, y) = before.outputs(x), after.outputs(x)
    assert torch.equal(f, g)
    assert torch.allclose(z, y[:, :3], rtol=1e-5, atol=1e-5)
    assert torch.equal(before.net.head.weight, after.net.head.weight[:3])  # type: ignore[index,arg-type]


def test_fresh_rows_of_the_new_class_are_answered_and_none_still_refused(
    at: Path, tmp_path: Path
) -> None:
    was, now = (said(at / name, "abcdf", tmp_path) for name in ("model", "m2"))
    assert {label for label, true in was if true == "d"} <= {NONE_LABEL, *KNOWN}
    new = [label for label, true in now if true == "d"]
    assert new.count("d") > 40
    old = [label for label, true in now if true in KNOWN and label != NONE_LABEL]
    assert len(old) > 120
    right = [label == true for label, true in now if label != NONE_LABEL]
    assert np.mean(right) > 0.85
    assert [label for label, true in now if true == "f"].count(NONE_LABEL) > 20


def test_threshold_and_promise_rest_on_rows_that_were_held_out(at: Path) -> None:
    """Oracle: the stored calibration rows, scored by the loaded model, carry the accuracy."""
    model = load(at / "m2")
    rows = stored(model, at / "m2", None).sets
    assert {"train", "validation", "calibration", "test"} <= {*rows}
    seen = [key for part in rows.values() for key in part.key.tolist()]
    assert len(seen) == len({*seen})
    held = rows["calibration"]
    given = as_outputs(model, held.f, model.net.head(held.f).detach())
    assert given.said is not None
    score, right = model.evidence(given), given.said.prediction == held.y.numpy()
    assert isinstance(model.threshold, Threshold)
    assert model.threshold.promise.accuracy == 0.9
    assert model.threshold.n == len(held)
    kept = score > model.threshold.value
    assert kept.mean() == pytest.approx(model.threshold.answered)
    assert right[kept].mean() >= 0.9
    delta = 1 - model.threshold.promise.certainty
    assert model.threshold.value in accuracy_values(score, right, 0.9, delta / 2)
    assert (held.y == NONE).sum() > 0
    assert (rows["test"].y != NONE).all()


def test_the_parts_of_its_data_are_those_of_the_training(at: Path) -> None:
    """Oracle: the same file gathered anew, row by row through the network."""
    model = load(at / "model")
    found = stored(model, at / "model", Request(data=at / "known.csv"))
    task = gather(Request(data=at / "known.csv")).task
    for name, part in {"train": task.train, "validation": task.validation}.items():
        f = torch.cat([model.outputs(part.x[i : i + 1])[0] for i in range(len(part))])  # type: ignore[attr-defined]
        assert torch.allclose(found.sets[name].f, f, atol=1e-5)
        assert torch.equal(found.sets[name].y, part.y)
    assert len(found.named) == len(task.train)


def test_a_model_that_was_extended_needs_no_data_and_keeps_its_history(at: Path) -> None:
    more = made_data.write_csv(at / "more.csv", ["x", "y", "label"], made_circles.rows("e", 60, 5))
    told = run(
        at / "m2", more, "--new", "e", "--remove", "a", "--merge", "b,c=right", "-o", at / "m3"
    )
    assert told.exit_code == 0, told.output
    model = load(at / "m3")
    assert model.classes == ("d", "e", "right")
    history = model.facts["history"]
    assert [entry["new"] for entry in history] == [{"d": 80}, {"e": 60, "right": 0}]
    assert history[1]["removed"] == ["a"]
    assert history[1]["merged"] == {"right": ["b", "c"]}
    assert history[0]["none"] == 60
    labels = [a.label for a in answers(model, [str(at / "known.csv")])]
    assert labels[250:].count("right") > 400
    assert "a" not in labels
    assert "removed: a" in told.output
    assert (at / "m3" / "report.html").read_text().count("<script src") == 0


def test_what_moved_is_told_and_kept(at: Path) -> None:
    told, history = (at / "told.txt").read_text(), load(at / "m2").facts["history"]
    moved = {each["name"]: each for each in history[0]["moved"]}
    rows = stored(load(at / "m2"), at / "m2", None).sets
    counts = {"classes that stay": int((rows["test"].y < 3).sum())}
    counts |= {"classes that are new": int((rows["test"].y == 3).sum())}
    counts |= {"none of the classes": len(rows["ood/none"])}
    assert {name: each["n"] for name, each in moved.items()} == counts
    assert moved["classes that are new"]["before"]["right"] in (None, 0.0)
    assert all(f"{name}, {n} rows: before" in told for name, n in counts.items())
    model, page = load(at / "model"), (at / "m2" / "report.html").read_text()
    stay = rows["test"].take(torch.where(rows["test"].y < 3)[0])
    z = model.net.head(stay.f).detach()
    labels = [row[0] for row in decide(model, as_outputs(model, stay.f, z), z, None)]
    kept = [label != NONE_LABEL for label in labels]
    assert moved["classes that stay"]["before"]["answered"] == pytest.approx(
        np.mean(kept), abs=1e-6
    )
    assert "What moved?" in page
    assert json.loads((at / "m2" / "model.json").read_text())["classes"] == list("abcd")


def test_refit_moves_the_rows_that_stay(at: Path) -> None:
    told = run(
        at / "model", at / "labelled.csv", "--data", at / "known.csv", "--refit", "-o", at / "refit"
    )
    assert told.exit_code == 0, told.output
    before, after = load(at / "model"), load(at / "refit")
    assert not torch.equal(before.net.head.weight, after.net.head.weight[:3])  # type: ignore[index,arg-type]


def test_rows_that_claim_a_new_class_are_fitted_too_unless_asked_not_to(
    at: Path, tmp_path: Path
) -> None:
    """A new class beyond an old one, whose row says yes to all of it."""
    draw = np.random.default_rng(3)
    rows = [[*(np.array([3, -1.5]) + 0.4 * draw.normal(size=2)), "new: z"] for _ in range(200)]
    data = made_data.write_csv(tmp_path / "l.csv", ["x", "y", "label"], rows)
    found = {}
    for option in ("--no-refit", ""):
        out = tmp_path / f"m{option}"
        told = run(
            at / "model", data, "--data", at / "known.csv", "-o", out, *filter(None, [option])
        )
        assert told.exit_code == 0, told.output
        found[option] = load(out).net.head.weight, told.output
    before, words = load(at / "model").net.head.weight, found["--no-refit"][1]
    assert torch.equal(found["--no-refit"][0][:3], before)  # type: ignore[index,arg-type]
    assert "; --refit fits all rows" in words
    assert "so all rows were fitted (validation accuracy" in found[""][1]
    assert not torch.equal(found[""][0][:3], before)  # type: ignore[index,arg-type]


def test_inputs_that_the_model_has_already_are_left_out(at: Path, tmp_path: Path) -> None:
    with (at / "known.csv").open() as file:
        again = [[x, y, "a"] for x, y, _ in list(csv.reader(file))[1:31]]
    rows = again + [[x, y, "new: d"] for x, y, _ in made_circles.rows("d", 60, 1)]
    data = made_data.write_csv(tmp_path / "l.csv", ["x", "y", "label"], rows)
    told = run(at / "model", data, "--data", at / "known.csv", "-o", tmp_path / "m")
    assert told.exit_code == 0, told.output
    assert "30 labelled rows are inputs that the model was trained or judged on" in told.output


BAD = {
    "unknown word": (
        [[9, 9, "dd"], [9, 8, "none"]],
        (),
        r"1 words are no class.*row 1: 'dd'.*'new: dd'",
    ),
    "near word": ([[9, 9, "Leav"]], ("--new", "leaves"), r"did you mean 'leaves'"),
    "new without a name": ([[9, 9, "new: "]], (), r"row 1: 'new:' names no class"),
    "nothing said": ([[9, 9, "leave"], [1, 1, ""]], (), "no row has a label"),
    "too few": ([[9, 9, "new: d"], [9, 8, "new: d"]], (), "too few"),
    "no such class": ([[9, 9, "a"]], ("--remove", "q"), "no class called 'q'"),
    "what becomes what": ([[9, 9, "a"]], ("--merge", "a,b"), "say A,B=C"),
    "all gone": ([[9, 9, "a"]], ("--remove", "a", "--remove", "b"), "two classes"),
    "a bad row": ([["x", 9, "a"], *[[i, 1, "b"] for i in range(9)]], (), "row 1: column 'x'"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_labels_have_their_sentence_and_nothing_is_written(
    name: str, at: Path, tmp_path: Path
) -> None:
    rows, options, says = BAD[name]
    data = made_data.write_csv(tmp_path / "l.csv", ["x", "y", "label"], rows)
    told = run(at / "model", data, "--data", at / "known.csv", "-o", tmp_path / "m", *options)
    assert isinstance(told.exception, BadInput), told.output
    with pytest.raises(BadInput, match=says):
        raise told.exception
    assert sorted(p.name for p in tmp_path.iterdir()) == ["l.csv"]


def test_without_the_data_or_with_other_data_it_is_refused(at: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    told = run(at / "model", at / "labelled.csv", "-o", out)
    assert "give the file or folder that it was trained from: --data" in str(told.exception)
    other = made_circles.table(tmp_path / "known.csv", KNOWN, 250, seed=4)
    told = run(at / "model", at / "labelled.csv", "--data", other, "-o", out)
    assert "is not what the model was trained on" in str(told.exception)
    told = run(at / "model", "-o", out)
    assert "nothing to do" in str(told.exception)
    told = run(at / "model", at / "labelled.csv", "--data", at / "known.csv", "-o", at / "model")
    assert isinstance(told.exception, BadInput)
    assert not out.exists()


def test_a_promise_that_the_old_classes_would_break_is_refused(at: Path, tmp_path: Path) -> None:
    """Many easy rows of a new class carry the promise of all, while another one lies amid an old one."""
    draw = np.random.default_rng(7)
    rows = [[30 + draw.normal(), 30 + draw.normal(), "new: y"] for _ in range(1500)]
    rows += [[*draw.normal(size=2), "new: z"] for _ in range(500)]
    data = made_data.write_csv(tmp_path / "l.csv", ["x", "y", "label"], rows)
    options = ("--accuracy", "0.8", "--score", "max_p", "--refit", "-o", tmp_path / "m")
    told = run(at / "model", data, "--data", at / "known.csv", *options)
    assert "for the classes that stay the promised accuracy of 0.8 does not look kept" in str(
        told.exception
    )
    assert not (tmp_path / "m").exists()


def test_a_promise_that_cannot_be_kept_as_it_was_is_refused(at: Path, tmp_path: Path) -> None:
    """Labels by lot, everywhere among the classes that there are."""
    found = made_circles.rows(KNOWN, 700, 8)
    rows = [[x, y, f"new: {'uvw'[i % 3]}"] for i, (x, y, _) in enumerate(found)]
    data = made_data.write_csv(tmp_path / "l.csv", ["x", "y", "label"], rows)
    told = run(at / "model", data, "--data", at / "known.csv", "-o", tmp_path / "m")
    said = str(told.exception)
    assert "the promise of before, accuracy >= 0.9 with certainty 0.95, cannot be kept" in said
    assert not (tmp_path / "m").exists()


@pytest.mark.slow
@pytest.mark.parametrize("formulation", ["ova", "softmax", "ova-dm"])
def test_several_networks_have_their_own_new_rows(formulation: str, tmp_path: Path) -> None:
    wish = Request(
        data=made_circles.table(tmp_path / "known.csv", KNOWN, 120),
        formulation=formulation,
        settings=("epochs=3", "members=2"),
    )
    machine = Machine(accelerator="cpu")
    work = train(
        launch(machine), gather(wish), tmp_path / "model", machine, Promise(coverage=0.8), "max_p"
    )
    for _ in work:
        pass
    more = made_circles.table(tmp_path / "more.csv", "d", 60, 2)
    told = run(
        tmp_path / "model",
        more,
        "--new",
        "d",
        "--data",
        tmp_path / "known.csv",
        "-o",
        tmp_path / "m",
    )
    assert told.exit_code == 0, told.output
    before, after = (load(tmp_path / name).net.head for name in ("model", "m"))
    assert isinstance(before, MeanOfP)
    assert isinstance(after, MeanOfP)
    for one, other in zip(before.members, after.members, strict=True):
        assert torch.equal(one.weight, other.weight[:3])  # type: ignore[index,arg-type]
        assert other.weight.shape[0] == 4  # type: ignore[index]
    new = [member.weight[3] for member in after.members]  # type: ignore[index]
    assert not torch.equal(new[0], new[1])


def test_a_filled_in_sheet_of_texts_extends_from_python(tmp_path: Path) -> None:
    """A text that a spreadsheet would run keeps its mark in the sheet, and loses it again."""
    data = made_data.sentences(tmp_path / "topics.csv", 60)
    model = ova.train(
        data, text="sentence", label="topic", epochs=3, coverage=0.8, out=tmp_path / "model"
    )
    strange = [
        f"= what of {a} and {b}" for a in ("soup", "bread", "salt", "milk") for b in range(12)
    ]
    log = made_data.write_csv(tmp_path / "log.csv", ["sentence"], [[t] for t in strange])
    found = model.review(log, tmp_path / "review", below=1)
    assert len(found.asked) == len(strange)
    with (tmp_path / "review/review.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert sorted(row["sentence"] for row in rows) == sorted(f"'{t}" for t in strange)
    for row in rows:
        row["label"] = "new: food"
    sheet = made_data.write_csv(tmp_path / "filled.csv", rows[0], [row.values() for row in rows])
    longer = model.extend(sheet, data=data, out=tmp_path / "m2", coverage=0.8)
    assert longer.classes == (*model.classes, "food")
    named = [name for name in json.loads((tmp_path / "m2/rows.json").read_text()) if "food" in name]
    assert named
    assert all(": = what of" in name for name in named)
    with pytest.raises(BadInput, match="no option of extend called 'acuracy'"):
        model.extend(sheet, out=tmp_path / "m3", acuracy=0.9)
    fewer = longer.extend(out=tmp_path / "m3", remove=["food"], coverage=0.8)
    assert fewer.classes == model.classes


def test_a_model_with_further_files_wants_them_again(tmp_path: Path) -> None:
    """Examples of none among the rows, a test file with an unknown label, and outside rows."""
    rows = made_circles.rows("abc", 120, 0)
    rows += [[x, y, "other"] for x, y, _ in made_circles.rows("f", 80, 1)]
    data = made_data.write_csv(tmp_path / "known.csv", ["x", "y", "kind"], rows)
    header = ["x", "y", "kind"]
    test = made_data.write_csv(tmp_path / "test.csv", header, made_circles.rows("abe", 40, 2))
    far = made_data.write_csv(tmp_path / "far.csv", header, made_circles.rows("d", 60, 3))
    wish = Request(
        data=data, label="kind", none="other", test=test, outside=far, settings=("epochs=3",)
    )
    machine, folder = Machine(accelerator="cpu"), tmp_path / "model"
    for _ in train(launch(machine), gather(wish), folder, machine, Promise(coverage=0.8)):
        pass
    more = made_circles.table(tmp_path / "more.csv", "d", 60, 4)
    out = ("--new", "d", "-o", tmp_path / "m")
    told = run(folder, more, "--data", data, *out)
    assert "give the others too, as then: --test FILE, --outside FILE" in str(told.exception)
    renamed = data.rename(tmp_path / "renamed.csv")
    told = run(folder, more, "--data", renamed, "--test", test, "--outside", far, *out)
    assert told.exit_code == 0, told.output
    model = load(tmp_path / "m")
    sets = stored(model, tmp_path / "m", None).sets
    assert {"ood/test", "ood/outside", "validation/outside"} <= {*sets}
    assert len(sets["test"]) > 80  # the test file, and some of the new rows
    assert (sets["ood/test"].y == NONE).all()
    assert model.classes == ("a", "b", "c", "d")


def test_a_change_is_read_and_checked() -> None:
    found = change(tuple("abcd"), ["x"], ["d"], ["a,b=b"])
    assert found.after == ("c", "b", "x")
    assert found.old == [2, None, None]
    assert found.new == (1, 2)
    y = torch.tensor([0, 1, 2, 3, NONE])
    assert found.target(y).tolist() == [1, 1, 0, NONE, NONE]
    for remove, merge in [
        (["a"], ["a,b=x"]),
        ([], ["a,b=x", "c,d=x"]),
        ([], ["a,a=x"]),
        ([], ["a=a"]),
    ]:
        with pytest.raises(BadInput):
            change(tuple("abcd"), [], remove, merge)
    assert change(tuple("abcd"), [], [], ["a=x"]).after == ("b", "c", "d", "x")  # a name changed
