"""What a model folder keeps of the rows that carry the promise: sets, and a batch judged at once."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.answer import answers
from ova.modelfolder.batch import named
from ova.modelfolder.folder import Model, digest, load
from ova.modelfolder.held import COVERAGE, Held, held, sets_of, tried
from ova.posthoc.outside import outside
from ova.posthoc.sets import fit_sets
from ova.predictions import NONE, NONE_LABEL, Predictions, read

Case = tuple[Path, Path]


@pytest.fixture(scope="module")
def case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    at = tmp_path_factory.mktemp("held")
    data = made_data.crowd(at / "crowd.csv", 200)
    how = ["--none", "other", "--set", "epochs=6", "--set", "batch_size=64", "--score", "max_p"]
    told = CliRunner().invoke(app, ["train", str(data), "-o", str(at / "model"), *how])
    assert told.exit_code == 0, told.output
    return data, at / "model"


@pytest.fixture(scope="module")
def model(case: Case) -> Model:
    return load(case[1])


def predict(case: Case, out: Path, *asked: str) -> list[dict[str, str]]:
    told = CliRunner().invoke(app, ["predict", str(case[1]), str(case[0]), "-o", str(out), *asked])
    assert told.exit_code == 0, told.output
    return list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))


def test_it_keeps_what_the_rows_that_carry_the_promise_give(case: Case, model: Model) -> None:
    rows = read(case[1] / "run/predictions/calibration.parquet")
    assert model.kept is not None
    assert model.kept.sets == fit_sets(rows, COVERAGE)
    inside = rows.confidence[rows.target != NONE]
    assert len(inside) < len(rows)
    assert model.kept.scores.tolist() == np.sort(inside).tolist()


def test_the_sets_are_printed_by_name(case: Case, model: Model, tmp_path: Path) -> None:
    rows = predict(case, tmp_path / "a.csv", "--sets")
    with case[0].open() as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    sets = [set(row["set"].split("; ")) - {NONE_LABEL} for row in rows]
    known = [label in its for label, its in zip(labels, sets, strict=True) if label != "other"]
    assert np.mean(known) > 0.93
    strange = [not its for label, its in zip(labels, sets, strict=True) if label == "other"]
    assert np.mean(strange) > 0.5  # and of the classes hardly any are called none of them
    assert set.union(*sets) == {"a", "b", "c"}
    assert all((row["set"] == NONE_LABEL) == (not its) for row, its in zip(rows, sets, strict=True))
    assert "set" not in predict(case, tmp_path / "b.csv")[0]
    assert [row.set for row in answers(model, [str(case[0])])] == [None] * len(rows)


def test_the_page_says_what_the_sets_are_on_rows_that_they_have_not_seen(
    case: Case, model: Model
) -> None:
    page = (case[1] / "report.html").read_text()
    assert model.kept is not None
    test = read(case[1] / "run/predictions/test.parquet")
    assert f"test, sets: {tried(sets_of(model.kept), test)}" in page
    right = sets_of(model.kept).predict(test)[np.arange(len(test)), test.target]
    assert f"the right class in {right.mean():.1%} of".replace("%", " %") in page


def test_a_batch_is_judged_at_once(case: Case, model: Model, tmp_path: Path) -> None:
    rows = predict(case, tmp_path / "a.csv", "--fdr", "0.1")
    assert model.kept is not None
    single = list(answers(model, [str(case[0])], 0.0))  # of each the best class
    found = outside(np.array([row.score for row in single], float), model.kept.scores, 0.1).named
    assert 0 < found.sum() < len(rows)
    for row, best, out in zip(rows, single, found.tolist(), strict=True):
        assert row["label"] == (NONE_LABEL if out else best.label)
        assert (row["best_guess"], row["runner_up"]) == (best.label, best.runner_up)
    told = CliRunner().invoke(app, ["predict", str(case[1]), str(case[0]), "--fdr", "0.1"])
    assert f"{found.sum()} none of the above (of these at most 0.1 are expected" in told.output


def test_rows_that_cannot_be_used_are_no_part_of_the_batch(case: Case, model: Model) -> None:
    some = list(answers(model, [str(case[0])], -1))[:40]
    bad = [
        type(row)(row.input, problem="torn") if k % 3 == 0 else row for k, row in enumerate(some)
    ]
    left = [row for row in bad if row.problem is None]
    got = [row for row in named(bad, model.kept, 0.3) if row.problem is None]
    assert got == list(named(left, model.kept, 0.3))


def test_what_was_kept_is_read_again_or_refused(model: Model) -> None:
    assert model.kept is not None
    row = json.loads(json.dumps(model.kept.to_json(), allow_nan=False))
    back = Held.from_json(row, 3)
    assert back.sets == model.kept.sets
    assert (back.scores == model.kept.scores).all()
    with pytest.raises(BadInput, match="not the sets of 4 classes"):
        Held.from_json(row, 4)
    for scores in ([float("nan")], [[0.5]]):
        with pytest.raises(BadInput, match="not a list of numbers"):
            Held.from_json(row | {"scores": scores}, 3)


def test_many_probabilities_are_not_kept_and_then_there_are_no_sets() -> None:
    rows = Predictions.from_probs([[0.9, 0.1]], [0], normalised=True)
    none = held(rows, rows)
    assert Held.from_json(none.to_json(), 2).sets == none.sets
    with pytest.raises(BadInput, match="the model has no sets: the rows that carry the promise"):
        sets_of(none)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--sets"], "without sets; train it again"),
        (["--fdr", "0.1"], "without scores; train it again"),
        (["--fdr", "1.5"], "--fdr 1.5 is no share"),
        (["--fdr", "0.1", "--threshold", "0.5"], "give one of them"),
    ],
)
def test_models_of_earlier_versions_and_wrong_options_are_told_so(
    asked: list[str], says: str, case: Case, tmp_path: Path
) -> None:
    facts = json.loads((case[1] / "model.json").read_text())
    old = shutil.copytree(case[1], tmp_path / "old")
    del facts["parts"]["held.json"], facts["sha256"]
    (old / "model.json").write_text(json.dumps({**facts, "sha256": digest(facts)}))
    told = CliRunner().invoke(app, ["predict", str(old), str(case[0]), *asked])
    assert says in str(told.exception)
