"""What the page of a model shows, against plain loops over the files that the training left."""

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import made_data
from narrowing import there
from ova.cli.app import app
from ova.modelfolder import train as training
from ova.modelfolder.folder import Model, load
from ova.modelfolder.inspecting import bins, positions, six
from ova.modelfolder.promise import half
from ova.posthoc.per_class import EachClass
from ova.posthoc.threshold import Promise
from ova.predictions import NONE, read
from ova.report.inspection import Inspection
from ova.report.model_page import write_model_page
from ova.training.engine import Machine, launch
from ova.userdata.gather import OUTSIDE, Gathered, gather
from ova.userdata.request import Request
from ova.userdata.rows import whole

FLIPPED = 12  # rows that are given the label of another cloud


@dataclass(frozen=True)
class Case:
    gathered: Gathered
    model: Model
    out: Path
    found: Inspection


def fit(gathered: Gathered, out: Path, wanted: Promise, score: str = "") -> Inspection:
    """Train, and give what the page was made of."""
    seen: list[Inspection] = []
    really = write_model_page

    def noted(facts: Any, found: Inspection, path: Path) -> None:
        seen.append(found)
        really(facts, found, path)

    machine = Machine(accelerator="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "write_model_page", noted)
        list(training.train(launch(machine), gathered, out, machine, wanted, score))
    return seen[0]


def clouds(path: Path) -> Path:
    """Four clouds far apart, some rows with a wrong label, and points of none beside them."""
    draw = np.random.default_rng(0)
    centres = np.array([(0, 0), (6, 0), (0, 6), (6, 6)])
    y = np.arange(800) % 4
    x = centres[y] + draw.normal(size=(800, 2))
    said = np.where(np.arange(800) < FLIPPED, (y + 1) % 4, y)
    rows = [[*point, "abcd"[k]] for point, k in zip(x.tolist(), said.tolist(), strict=True)]
    return made_data.write_csv(path, ["x", "y", "label"], rows)


def nowhere(path: Path) -> Path:
    """Points between the clouds."""
    draw = np.random.default_rng(1)
    rows = (3 + draw.normal(size=(90, 2))).tolist()
    return made_data.write_csv(path, ["x", "y"], rows)


@pytest.fixture(scope="module", params=["max_p", "energy_nearest"])
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    at = tmp_path_factory.mktemp("page")
    wish = Request(
        data=clouds(at / "clouds.csv"), outside=nowhere(at / "nowhere.csv"), settings=("epochs=8",)
    )
    gathered = gather(wish)
    found = fit(gathered, at / "model", Promise(leak=0.3), request.param)
    return Case(gathered, load(at / "model"), at / "model", found)


def judged(case: Case, name: str) -> tuple[Any, Any]:
    """Predictions of the run, and which of them the model answers, row by row."""
    from ova.modelfolder.answer import as_outputs, outputs

    p, part = read(case.out / f"run/predictions/{name}.parquet"), examples(case, name)
    score = case.model.evidence(as_outputs(case.model, *outputs(case.model, part.x, None)))
    return p, score


def examples(case: Case, name: str) -> Any:
    return case.gathered.task.evaluations[name]()


def test_the_slider_says_what_the_threshold_does(case: Case) -> None:
    sweep = there(case.found.sweep)
    p, score = judged(case, "test")
    kept = [s > case.model.threshold.value for s in score.tolist()]
    assert sweep.answered[sweep.start] == pytest.approx(sum(kept) / len(kept))
    right = [bool(r) for r, k in zip(p.correct, kept, strict=True) if k]
    assert sweep.accuracy[sweep.start] == pytest.approx(sum(right) / len(right))
    _, far = judged(case, OUTSIDE)
    unseen = [s for i, s in enumerate(far.tolist()) if i not in half(len(far), 0)]
    through = sum(s > case.model.threshold.value for s in unseen) / len(unseen)
    assert sweep.through[OUTSIDE][sweep.start] == pytest.approx(through)
    assert sweep.grid[sweep.start] == six(case.model.shown.value)
    assert sweep.answered[0] == 1.0
    assert sweep.answered[-1] == 0.0
    assert sorted(sweep.answered, reverse=True) == list(sweep.answered)


def test_the_inputs_are_the_rows_that_are_named(case: Case) -> None:
    frame = whole(case.out.parent / "clouds.csv").columns
    for shown in (*case.found.mistakes, *case.found.doubtful, *case.found.suspects):
        row = int(there(re.match(r"row (\d+) of clouds.csv", shown.place))[1]) - 1
        assert shown.label == frame["label"][row]
        said = [f"{float(frame[name][row]):.6g}" for name in "xy"]
        assert shown.text == f"x {said[0]}, y {said[1]}"
    far = whole(case.out.parent / "nowhere.csv").columns
    for shown in case.found.outside[OUTSIDE]:
        row = int(there(re.match(r"row (\d+) of nowhere.csv", shown.place))[1]) - 1
        assert shown.text.startswith(f"x {float(far['x'][row]):.6g}")
        assert not shown.known


def test_mistakes_are_wrong_and_the_surest_first(case: Case) -> None:
    p, _ = judged(case, "test")
    assert all(shown.guess != shown.label for shown in case.found.mistakes)
    assert len(case.found.mistakes) == min(12, int((~p.correct).sum()))
    sure = [shown.confidence for shown in case.found.mistakes]
    assert sure == sorted(sure, reverse=True)


def test_labels_that_were_changed_are_found(case: Case) -> None:
    """All rows but those of the test part are looked at; most of those changed are found, and stand first."""
    test = set(case.gathered.origins["test"].rows)
    wanted = set(range(FLIPPED)) - test
    said = [int(there(re.match(r"row (\d+) ", s.place))[1]) - 1 for s in case.found.suspects]
    assert len(wanted) >= 6
    assert len(wanted & set(said)) >= 0.7 * len(wanted)
    assert wanted & set(said) == set(said[: len(wanted & set(said))])


def test_the_confusions_are_those_of_the_test_rows(case: Case) -> None:
    p, score = judged(case, "test")
    found = case.found.confusion
    assert found.target.tolist() == p.target.tolist()
    assert found.guess.tolist() == p.prediction.tolist()
    assert found.answered.tolist() == (score > case.model.threshold.value).tolist()
    assert NONE not in found.target


def test_a_page_of_thresholds_by_class_has_no_slider(case: Case, tmp_path: Path) -> None:
    wish = Request(data=case.out.parent / "clouds.csv", settings=("epochs=3",))
    found = fit(gather(wish), tmp_path / "model", EachClass(0.8))
    assert found.sweep is None
    page = (tmp_path / "model/report.html").read_text("utf-8")
    assert "Each class has a threshold of its own" in page


def test_models_are_compared_by_the_names_of_their_folders(case: Case, tmp_path: Path) -> None:
    for name in ("cats", "dogs"):
        shutil.copytree(case.out, tmp_path / name)
    asked = [
        "report",
        str(tmp_path / "cats"),
        str(tmp_path / "dogs"),
        "-o",
        str(tmp_path / "r.html"),
    ]
    assert CliRunner().invoke(app, asked).exit_code == 0
    page = (tmp_path / "r.html").read_text("utf-8")
    text = " ".join(unescape(re.sub("<[^>]*>", " ", page.split("<script")[0])).split())
    assert "cats" in text
    assert "dogs" in text
    assert case.gathered.recipe.formulation not in re.sub(r"\{.*?\}", "", text)
    assert "Not measured in these runs" not in text
    assert "This needs" not in text  # of a card without a number


def test_the_page_of_one_model_is_written_again(case: Case, tmp_path: Path) -> None:
    asked = ["report", str(case.out), "-o", str(tmp_path / "r.html")]
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert (tmp_path / "r.html").read_bytes() == (case.out / "report.html").read_bytes()


@pytest.mark.parametrize("fitted", [0.5, -np.inf, np.inf, 2.0])
@pytest.mark.parametrize("values", [[0.25], [0.1, 0.5, 0.5, 0.9], [], [-np.inf, 3.0]])
def test_positions_are_in_order_on_both_scales_and_hold_the_threshold(
    values: list[float], fitted: float
) -> None:
    """On the other scale every value is a tenth."""
    here = np.array(values, np.float64)
    grid = positions(here, here / 10, (fitted, fitted / 10))
    for column in zip(*grid, strict=True):
        assert list(column) == sorted(set(column))
        assert np.isfinite(column).all()
    there_ = [t for t, _ in grid]
    assert not np.isfinite(fitted) or fitted in there_
    finite = [v for v in values if np.isfinite(v)]
    assert not finite or (min(there_) < min(finite) and max(there_) >= max(finite))
    assert all(abs(called - t / 10) < 1e-2 for t, called in grid[1:])


@pytest.mark.parametrize("scale", ["confidence", "energy"])
def test_every_row_is_in_a_bin(scale: str) -> None:
    draw = np.random.default_rng(0)
    sets: Mapping[str, Any] = {
        "right": draw.random(1000),
        "wrong": draw.random(3),
        "far": np.zeros(0),
    }
    rows = bins(sets, scale)
    for name, values in sets.items():
        assert sum(row["count"] for row in rows if row["set"] == name) == len(values)
    assert json.dumps(rows)
