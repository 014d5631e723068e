"""What a model refused, in groups, as a page and a sheet that can be filled in and read again."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import made_circles
import made_data
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.answer import answers
from ova.modelfolder.folder import load
from ova.modelfolder.review.groups import APART, FEWEST, directions, distances, grouped
from ova.modelfolder.review.review import review
from ova.modelfolder.review.sheet import Label, filled_in
from ova.modelfolder.train import train
from ova.posthoc.threshold import Promise
from ova.predictions import NONE_LABEL
from ova.training.engine import Machine, launch
from ova.userdata.gather import gather
from ova.userdata.request import Request
from ova.userdata.rows import Frame, whole


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("review")
    made_circles.model(place, "abc", Promise(coverage=0.9))
    made_circles.table(place / "log.csv", "abdef", 40, seed=3)
    return place


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("texts")
    data = made_data.sentences(place / "topics.csv", 60)
    wish = Request(data=data, text="sentence", label="topic", settings=("epochs=3",))
    machine = Machine(accelerator="cpu")
    for _ in train(launch(machine), gather(wish), place / "model", machine, Promise(accuracy=0.9)):
        pass
    return place


def run(*args: object) -> Result:
    return CliRunner().invoke(app, ["review", *map(str, args)])


def sheet(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def slow_groups(f: np.ndarray) -> list[set[int]]:
    """Average linkage as it is defined: the two nearest groups are put together, again and again."""
    x = f - f.mean(0)
    u = x / np.linalg.norm(x, axis=1, keepdims=True)
    d = np.linalg.norm(u[:, None] - u[None], axis=-1)
    groups = [{row} for row in range(len(u))]
    while len(groups) > 1:
        pairs = [(i, j) for j in range(len(groups)) for i in range(j)]
        mean = {p: d[np.ix_([*groups[p[0]]], [*groups[p[1]]])].mean() for p in pairs}
        (i, j), least = min(mean.items(), key=lambda item: item[1])
        if least > APART:
            break
        groups = [g for k, g in enumerate(groups) if k not in (i, j)] + [groups[i] | groups[j]]
    return groups


@pytest.mark.parametrize("seed", range(5))
def test_groups_are_those_of_average_linkage(seed: int) -> None:
    draw = np.random.default_rng(seed)
    f = draw.normal(size=(6, 8))[draw.integers(0, 6, 30)] + 0.4 * draw.normal(size=(30, 8))
    groups, alone = grouped(f)
    slow = slow_groups(f)
    assert {frozenset(g.tolist()) for g in groups} == {
        frozenset(g) for g in slow if len(g) >= FEWEST
    }
    assert sorted(alone.tolist()) == sorted(row for g in slow if len(g) < FEWEST for row in g)
    assert [len(g) for g in groups] == sorted(map(len, groups), reverse=True)
    for rows in groups:
        near = directions(f)[rows] @ directions(f)[rows].mean(0)
        assert (np.diff(near) <= 1e-6).all()


def test_distances_are_those_of_the_definition() -> None:
    u = directions(np.random.default_rng(0).normal(size=(600, 5)))  # some blocks
    i, j = np.triu_indices(600, 1)
    assert np.allclose(distances(u), np.linalg.norm(u[i] - u[j], axis=1), atol=1e-3)
    for few in (0, 1, 2):
        groups, alone = grouped(u[:few])
        assert (groups, alone.tolist()) == ([], list(range(few)))
    same, _ = grouped(np.ones((5, 3)))  # no direction from their mean
    assert sum(map(len, same)) in (0, 5)


def test_every_refused_row_is_in_the_sheet_once_and_groups_are_of_one_class(at: Path) -> None:
    """Oracle: the answers of `ova predict`, and the classes that the rows were drawn from."""
    told = run(at / "model", at / "log.csv", "--out", at / "review", "--below", "0")
    assert told.exit_code == 0, told.output
    frame, rows = whole(at / "log.csv").columns, sheet(at / "review/review.csv")
    said = [a.label for a in answers(load(at / "model"), [str(at / "log.csv")])]
    refused = [i for i, label in enumerate(said) if label == NONE_LABEL]
    true = dict(zip(zip(frame["x"], frame["y"], strict=True), frame["label"], strict=True))
    found = [(row["x"], row["y"]) for row in rows]
    assert sorted(found) == sorted((frame["x"][i], frame["y"][i]) for i in refused)
    assert f"{len(said)} inputs: {len(refused)} none of the above" in told.output
    groups: dict[str, list[str]] = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(true[row["x"], row["y"]])
    sizes = [len(v) for k, v in groups.items() if k]
    assert sizes == sorted(sizes, reverse=True)
    majority = [max(v.count(n) for n in set(v)) for k, v in groups.items() if k]
    assert sum(majority) / sum(sizes) > 0.75
    page = (at / "review/review.html").read_text(encoding="utf-8")
    assert page.count('<section class="group">') == len(groups)


def test_predictions_and_their_inputs_give_the_same_review(texts: Path, tmp_path: Path) -> None:
    model = load(texts / "model")
    lines = ["=1+1 rain and the sun", "<script>alert(1)</script>", "purple elephants", "go away"]
    lines += [f"what a strange thing number {i} to ask" for i in range(20)]
    lines += [str(t) for t in whole(texts / "topics.csv").columns["sentence"][::7]]
    inputs = made_data.write_csv(tmp_path / "in.csv", ["sentence"], [[t] for t in lines])
    found = review(model, [str(inputs)], 0.6)
    assert len(found.asked)
    for kind in ("csv", "jsonl", "parquet"):
        out = tmp_path / f"answers.{kind}"
        told = CliRunner().invoke(
            app, ["predict", str(texts / "model"), str(inputs), "--out", str(out)]
        )
        assert told.exit_code == 0, told.output
        same = review(model, [str(out)], 0.6)
        assert same.asked.cells == found.asked.cells
        assert (same.asked.label, same.asked.guess) == (found.asked.label, found.asked.guess)
        assert [g.tolist() for g in same.members] == [g.tolist() for g in found.members]


def test_what_a_stranger_wrote_stays_text(texts: Path, tmp_path: Path) -> None:
    lines = [
        "<script>alert(1)</script>",
        '=HYPERLINK("x")',
        "</li><img src=x onerror=alert(1)>",
    ] * 3
    data = made_data.write_csv(
        tmp_path / "log.csv", ["sentence"], [[f"{t} {i}"] for i, t in enumerate(lines)]
    )
    told = run(texts / "model", data, "--out", tmp_path / "r", "--below", "1")
    assert told.exit_code == 0, told.output
    page = (tmp_path / "r/review.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert all(not row["sentence"].startswith("=") for row in sheet(tmp_path / "r/review.csv"))


def test_a_sheet_is_read_as_it_was_filled_in(at: Path) -> None:
    model = load(at / "model")
    frame = Frame(
        {
            "label": ["", "a", "leave", "", "none", "new: q", "", "q"],
            "group": ["1", "1", "1", "2", "2", "2", "", ""],
            "group_label": ["", "none", "", "new: w", "", "", "", ""],
        }
    )
    found = filled_in(frame, model, [], "", "sheet")
    none, q = Label(""), Label("q")
    assert found == [none, Label("a"), None, Label("w"), none, q, None, q]
    two = Frame({**frame.columns, "group_label": ["a", "b", "", "", "", "", "", ""]})
    with pytest.raises(BadInput, match="group 1 is called 'a' and 'b'"):
        filled_in(two, model, [], "", "sheet")
    lone = Frame({**frame.columns, "group_label": [""] * 6 + ["a", ""]})
    with pytest.raises(BadInput, match="in a row that is in no group"):
        filled_in(lone, model, [], "", "sheet")


def test_what_cannot_be_a_log_has_its_sentence_and_nothing_is_written(
    at: Path, texts: Path, tmp_path: Path
) -> None:
    (tmp_path / "empty.csv").write_text("x,y\n")
    other = tmp_path / "other.jsonl"
    row = {"input": "1", "label": "zebra", "best_guess": "zebra", "score": 0.5}
    other.write_text(json.dumps(row) + "\n")
    numbered = tmp_path / "numbered.csv"
    numbered.write_text("input,label,best_guess,score\n1,a,a,0.5\n")
    kept = tmp_path / "kept.csv"
    kept.write_text("input,label,best_guess,score,x,y\n" + "1,a,a,123,0.5,0.1\n" * 5)
    known = tmp_path / "known.csv"
    known.write_text("x,y\n0.1,0.1\n")
    out = tmp_path / "out"
    bad = {
        "there are no rows": (at, tmp_path / "empty.csv"),
        "log of another model: it answers 'zebra'": (texts, other),
        "predict with --keep": (at, numbered),
        "its 5 scores are not those of this model": (at, kept),
        "there is nothing to review": (at, known),
        "none of its 1 inputs can be used": (
            at,
            made_data.write_csv(tmp_path / "bad.csv", ["x", "y"], [["one", "1e99"]]),
        ),
        "there is no file": (at, tmp_path / "absent.csv"),
        "no column 'y'": (at, made_data.write_csv(tmp_path / "x.csv", ["x"], [[1]])),
    }
    for says, (model, log) in bad.items():
        told = run(model / "model", log, "--out", out, "--below", "0")
        assert isinstance(told.exception, BadInput), says
        assert says in str(told.exception)
        assert not out.exists()
    assert "no confidence" in str(run(at / "model", known, "--below", "2").exception)


def test_a_sheet_that_may_be_filled_in_is_never_written_over(at: Path, tmp_path: Path) -> None:
    (tmp_path / "review.csv").write_text("precious")
    told = run(at / "model", at / "log.csv", "--out", tmp_path)
    assert "perhaps filled in" in str(told.exception)
    assert (tmp_path / "review.csv").read_text() == "precious"


def test_pictures_are_shown_in_the_page(tmp_path: Path) -> None:
    data = made_data.pictures(tmp_path / "colours", 20)
    wish = Request(data=data, settings=("epochs=1",))
    machine = Machine(accelerator="cpu")
    for _ in train(
        launch(machine), gather(wish), tmp_path / "model", machine, Promise(coverage=0.5)
    ):
        pass
    told = run(tmp_path / "model", data / "red", "--out", tmp_path / "r", "--below", "1")
    assert told.exit_code == 0, told.output
    page = (tmp_path / "r/review.html").read_text(encoding="utf-8")
    assert "data:image/png;base64," in page
    assert "http" not in page.replace("http-equiv", "")
    assert {Path(row["file"]).suffix for row in sheet(tmp_path / "r/review.csv")} == {".png"}
