"""`ova monitor`: logs of every format, labels that come later, alarms by exit code, and its page."""

import csv
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import made_data
from ova.cli.app import app
from ova.errors import BadInput
from ova.modelfolder.folder import digest, load
from ova.modelfolder.held import Held
from ova.modelfolder.log import Labels, read_log, rounded
from ova.modelfolder.watching import Watch, watch
from ova.posthoc.monitoring import Monitor
from ova.posthoc.threshold import fit_threshold
from ova.predictions import NONE_LABEL

Row = dict[str, Any]
CENTRES = {"a": (0.0, 0.0), "b": (2.0, 0.0), "c": (0.0, 2.0)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    at = tmp_path_factory.mktemp("monitor")
    data = made_data.clouds(at / "clouds.csv", 400)
    how = ["--set", "epochs=4", "--score", "max_p", "--accuracy", "0.8"]
    told = CliRunner().invoke(app, ["train", str(data), "-o", str(at / "model"), *how])
    assert told.exit_code == 0, told.output
    assert load(at / "model").threshold.promised
    return at / "model"


def points(path: Path, n: int, moved: int, seed: int = 5) -> Path:
    """New points of the same clouds; from row `moved` on they lie elsewhere, their labels do not."""
    draw, rows = np.random.default_rng(seed), []
    for row in range(n):
        name = "abc"[draw.integers(3)]
        at = np.array(CENTRES[name]) + draw.normal(size=2) + (2 if row >= moved else 0)
        rows.append([f"id-{row}", f"day {row // 100}", *at, name if row % 3 else ""])
    return made_data.write_csv(path, ["id", "time", "x", "y", "label"], rows)


def predicted(folder: Path, data: Path, out: Path) -> Path:
    keep = [word for name in ("id", "time", "label") for word in ("--keep", name)]
    told = CliRunner().invoke(app, ["predict", str(folder), str(data), "-o", str(out), *keep])
    assert told.exit_code == 0, told.output
    return out


@pytest.fixture(scope="module")
def same(folder: Path) -> Path:
    """A log of nothing new."""
    data = points(folder.parent / "same.csv", 600, 600)
    return predicted(folder, data, folder.parent / "same-log.csv")


@pytest.fixture(scope="module")
def moved(folder: Path) -> Path:
    """A log of which the second half lies elsewhere."""
    data = points(folder.parent / "moved.csv", 1600, 800, 6)
    return predicted(folder, data, folder.parent / "moved-log.csv")


def rows_of(path: Path) -> list[Row]:
    with path.open(encoding="utf-8") as file:
        return [*csv.DictReader(file)]


def as_lines(path: Path, rows: Sequence[Row]) -> Path:
    """Rows as a server writes them: a refused one has no label, numbers are numbers."""
    with path.open("w", encoding="utf-8") as file:
        for row in rows:
            of = {name: value or None for name, value in row.items()}
            of |= {"score": float(row["score"]), "why": "", "input": None}
            of["label"] = None if row["label"] == NONE_LABEL else row["label"]
            file.write(json.dumps(of) + "\n")
    return path


def ova(*words: object) -> Any:
    return CliRunner().invoke(app, ["monitor", *map(str, words)])


def test_a_log_of_nothing_new_raises_no_alarm(folder: Path, same: Path, tmp_path: Path) -> None:
    told = ova(folder, same, "--json", tmp_path / "found.json")
    assert told.exit_code == 0, told.output
    assert "no alarm" in told.output
    found = json.loads((tmp_path / "found.json").read_text())
    assert (found["rows"], found["labelled"], found["exit_code"]) == (600, 400, 0)
    right = [r["label"] == r["label (given)"] for r in rows_of(same)
             if r["label (given)"] and r["label"] != NONE_LABEL]  # fmt: skip
    assert found["accuracy"]["labels"] == found["labelled_answers"] == len(right)
    assert found["accuracy"]["seen"] == pytest.approx(np.mean(right))
    assert found["accuracy"]["low"] < np.mean(right) < found["accuracy"]["high"]
    assert (
        f"{np.mean(right):.1%} of {len(right)} labelled answers".replace("%", " %") in told.output
    )


def test_points_elsewhere_are_found_with_their_time(
    folder: Path, moved: Path, tmp_path: Path
) -> None:
    told = ova(folder, moved, "--json", tmp_path / "found.json")
    found = json.loads((tmp_path / "found.json").read_text())
    assert told.exit_code == found["exit_code"] == 5, told.output  # inputs, and the promise
    about = {each["about"] for each in found["alarms"]}
    assert about == {"inputs", "promise"}
    for each in found["alarms"]:
        assert each["alarm"] >= 800
        assert abs(each["since"] - 800) < 200
        assert each["alarm_time"] == f"day {each['alarm'] // 100}"
        line = f"{each['name']} .* since about row {each['since'] + 1} \\({each['since_time']}\\)"
        assert re.search(line, told.output)


def test_the_log_is_the_monitor_of_its_columns(folder: Path, moved: Path) -> None:
    """Slowly: the columns by hand, put into the monitor."""
    found, model = watch(folder, [moved]), load(folder)
    assert model.kept is not None
    assert model.kept.answered is not None
    rows = rows_of(moved)
    held = model.kept.answered
    by_hand = Monitor(
        [float(f"{s:.6g}") for s in held.scores],
        held.classes,
        names=model.classes,
        promised={"accuracy": 0.8},
    )
    guess = [model.classes.index(row["best_guess"]) for row in rows]
    by_hand.update([float(row["score"]) for row in rows], guess)
    kept = [i for i, r in enumerate(rows) if r["label (given)"] and r["label"] != NONE_LABEL]
    good = [rows[i]["label"] == rows[i]["label (given)"] for i in kept]
    by_hand.outcomes("accuracy", good, kept)
    assert found.monitor.findings == by_hand.findings


def test_every_format_says_the_same(folder: Path, moved: Path, tmp_path: Path) -> None:
    rows, wanted = rows_of(moved), watch(folder, [moved]).monitor.findings
    table = pa.table({name: [row[name] for row in rows] for name in rows[0]})
    place = table.column_names.index("score")
    table = table.set_column(place, "score", [[float(row["score"]) for row in rows]])
    parquet.write_table(table, tmp_path / "log.parquet")
    lines = as_lines(tmp_path / "log.jsonl", rows)
    half = as_lines(tmp_path / "half.jsonl", rows[:700])
    rest = made_data.write_csv(tmp_path / "rest.csv", rows[0], [row.values() for row in rows[700:]])
    mixed = as_lines(tmp_path / "mixed.jsonl", [row | {"time": 1} for row in rows])
    with mixed.open("a") as file:  # cut off while it was written
        file.write('{"score": 0.1, "label": "a"')
    for logs in ([tmp_path / "log.parquet"], [lines], [half, rest], [mixed]):
        assert watch(folder, logs).monitor.findings == wanted


def test_rows_that_could_not_be_used_are_counted_and_left_out(
    folder: Path, same: Path, tmp_path: Path
) -> None:
    rows = rows_of(same)
    bad = dict.fromkeys(rows[0], "") | {"problem": "torn"}
    torn = made_data.write_csv(
        tmp_path / "torn.csv", rows[0], [r.values() for r in (bad, *rows, bad)]
    )
    found = watch(folder, [torn])
    assert found.log.skipped == 2
    assert found.monitor.findings == watch(folder, [same]).monitor.findings
    assert "2 rows have no score and are left out" in found.warnings


def test_labels_of_a_file_find_their_rows(folder: Path, moved: Path, tmp_path: Path) -> None:
    rows = [row for row in rows_of(moved) if row["label (given)"]]
    some = [[row["id"], row["label (given)"]] for row in rows]
    beside = made_data.write_csv(tmp_path / "l.csv", ["id", "label"], some[::-1])
    found = watch(folder, [moved], Labels("", beside))
    assert found.monitor.findings == watch(folder, [moved]).monitor.findings
    twice = made_data.write_csv(tmp_path / "m.csv", ["id", "label"], [*some, some[0]])
    with pytest.raises(BadInput, match="the id 'id-1' comes twice"):
        watch(folder, [moved], Labels("", twice))
    with pytest.raises(BadInput, match="there is no column 'key'"):
        watch(folder, [moved], Labels("", beside, "key"))


def test_labels_are_bet_on_in_the_order_in_which_they_came(
    folder: Path, moved: Path, tmp_path: Path
) -> None:
    rows, state = rows_of(moved), tmp_path / "state.json"
    some = [[row["id"], row["label (given)"]] for row in rows if row["label (given)"]]
    late, early = some[::2], some[1::2]  # those of the other rows come later
    found: Watch | None = None
    for known in (early, early, [*early, *late]):
        file = made_data.write_csv(tmp_path / "l.csv", ["id", "label"], known)
        found = watch(folder, [moved], Labels("", file), state=state)
    assert found is not None
    places = {row["id"]: i for i, row in enumerate(rows)}
    order = [places[name] for name, _ in (*early, *late)]
    answered = [i for i in order if rows[i]["label"] != NONE_LABEL]
    assert found.right_rows.tolist() == answered
    assert found.monitor.promised["accuracy"].wealth[0].tolist() == answered
    # What came first was bet on first, and stands.
    before = watch(folder, [moved], Labels("", made_data.write_csv(
        tmp_path / "e.csv", ["id", "label"], early)))  # fmt: skip
    path = before.monitor.promised["accuracy"].wealth[1]
    np.testing.assert_array_equal(found.monitor.promised["accuracy"].wealth[1][: len(path)], path)


def test_a_state_goes_with_its_model_rate_log_and_labels(
    folder: Path, same: Path, moved: Path, tmp_path: Path
) -> None:
    state, rows = tmp_path / "state.json", rows_of(same)
    first = made_data.write_csv(tmp_path / "a.csv", rows[0], [r.values() for r in rows[:300]])
    watch(folder, [first], state=state)
    said = state.read_bytes()
    watch(folder, [same], state=tmp_path / "other.json")
    with pytest.raises(BadInput, match="a rate holds only if it is not changed"):
        watch(folder, [same], false_alarms=0.1, state=state)
    with pytest.raises(BadInput, match="other rows than the first 300"):
        watch(folder, [moved], state=state)
    relabelled = [row | {"label (given)": "b" if row["label (given)"] else ""} for row in rows]
    other = made_data.write_csv(tmp_path / "b.csv", rows[0], [r.values() for r in relabelled])
    with pytest.raises(BadInput, match="gone or different"):
        watch(folder, [other], state=state)
    content = json.loads(said)
    for change in ({"format": "x"}, {"calls": [[999]]}, {"model": "another"}):
        (tmp_path / "c.json").write_text(json.dumps(content | change))
        with pytest.raises(BadInput, match="state"):
            watch(folder, [same], state=tmp_path / "c.json")
    assert state.read_bytes() == said
    watch(folder, [same], state=state)
    assert json.loads(state.read_text())["rows"] == 600


def test_biased_labels_and_other_thresholds_are_told(
    folder: Path, same: Path, tmp_path: Path
) -> None:
    assert not [w for w in watch(folder, [same]).warnings if "drawn by lot" in w]
    rows, cut = rows_of(same), 0.9
    sure = [
        row | {"label (given)": row["best_guess"] if float(row["score"]) > cut else ""}
        for row in rows
    ]
    path = made_data.write_csv(tmp_path / "sure.csv", rows[0], [r.values() for r in sure])
    assert any("higher scores than those without" in w for w in watch(folder, [path]).warnings)
    one = [row | {"label (given)": "a" if row["label"] == "a" else ""} for row in rows]
    path = made_data.write_csv(tmp_path / "one.csv", rows[0], [r.values() for r in one])
    assert any("of other classes than those without" in w for w in watch(folder, [path]).warnings)
    every = [row | {"label": row["best_guess"]} for row in rows]
    path = made_data.write_csv(tmp_path / "all.csv", rows[0], [r.values() for r in every])
    found = watch(folder, [path])
    assert any("not answered by the model's own threshold" in w for w in found.warnings)
    assert not found.monitor.promised
    bare = [{name: row[name] for name in ("score", "label")} for row in rows]
    path = made_data.write_csv(tmp_path / "bare.csv", bare[0], [r.values() for r in bare])
    found = watch(folder, [path])
    assert [each.name for each in found.monitor.findings] == ["scores", "accuracy"]
    assert len(found.warnings) == 2  # no best guess, no labels


def test_the_page_asks_for_nothing_and_escapes(folder: Path, moved: Path, tmp_path: Path) -> None:
    rows = [row | {"time": "<script>alert(1)</script>"} for row in rows_of(moved)]
    log = made_data.write_csv(tmp_path / "log.csv", rows[0], [r.values() for r in rows])
    told = ova(folder, log, "-o", tmp_path / "page.html")
    assert told.exit_code == 5
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert not re.search(r'(src|href)="(?!#|data:)', page.split("<script")[0])
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [chart["name"] for chart in data["charts"]] == ["wealth", "bounds", "refusals"]
    found = watch(folder, [log])
    for each in found.monitor.findings:
        assert each.name.replace("'", "&#x27;") in page


@pytest.mark.parametrize(
    ("header", "rows", "says"),
    [
        (["a"], [["1"]], "is no log of answers"),
        (["score", "label"], [], "no row with a score"),
        (["score", "label"], [["0.5", "z"]], "'z' is no class of the model"),
        (["score", "label", "best_guess"], [["0.5", "a", "z"]], "no class of the model"),
        (["score", "label", "truth"], [["0.5", "a", "z"]], "no label is a class of the model"),
        (["score", "label"], [["high", "a"]], "damaged, or not a whole .csv file"),
    ],
)
def test_logs_that_cannot_be_used_are_told(
    header: list[str], rows: list[list[str]], says: str, folder: Path, tmp_path: Path
) -> None:
    log = made_data.write_csv(tmp_path / "log.csv", header, rows)
    told = ova(folder, log, "--state", tmp_path / "s.json", "--json", tmp_path / "f.json")
    assert says in str(told.exception)
    assert not (tmp_path / "s.json").exists()
    assert not (tmp_path / "f.json").exists()


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["--false-alarms", "0"], "is no chance"),
        (["--out", "page.txt"], "the page is HTML"),
        (["--label", "nowhere"], "there is no column 'nowhere'"),
        (["--labels", "nowhere.csv"], "there is no file nowhere.csv"),
    ],
)
def test_wrong_options_are_told(asked: list[str], says: str, folder: Path, same: Path) -> None:
    assert says in str(ova(folder, same, *asked).exception)


def test_damaged_lines_and_old_models_are_told(folder: Path, same: Path, tmp_path: Path) -> None:
    (tmp_path / "l.jsonl").write_text('{"score": 0.5, "label": "a"}\n{"score": 0.5, "lab\n')
    with pytest.raises(BadInput, match="line 2"):
        watch(folder, [tmp_path / "l.jsonl"])
    with pytest.raises(BadInput, match="format of a log"):
        watch(folder, [folder / "model.json"])
    old = shutil.copytree(folder, tmp_path / "old")
    facts = json.loads((old / "model.json").read_text())
    del facts["parts"]["held.json"], facts["sha256"]
    (old / "model.json").write_text(json.dumps({**facts, "sha256": digest(facts)}))
    with pytest.raises(BadInput, match="kept no scores to compare with"):
        watch(old, [same])


def test_what_a_model_keeps_of_its_rows_is_read_again_or_refused(folder: Path) -> None:
    kept = load(folder).kept
    assert kept is not None
    assert kept.answered is not None
    row = json.loads(json.dumps(kept.to_json()))
    back = Held.from_json(row, 3).answered
    assert back is not None
    assert (back.scores == kept.answered.scores).all()
    assert (back.classes == kept.answered.classes).all()
    assert np.sort(back.scores).tolist() == kept.scores.tolist()  # no row is of none of the classes
    assert Held.from_json(row | {"answered": None}, 3).answered is None
    for change in ({"classes": [3, 0]}, {"classes": [0]}, {"scores": [[1.0], [2.0]]}):
        with pytest.raises(BadInput, match="are not answered with 3 classes"):
            Held.from_json(
                row | {"answered": {"scores": [1.0, 2.0], "classes": [0, 1], **change}}, 3
            )


def test_scores_are_rounded_as_csv_rounds_them() -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(size=2000) * 10.0 ** rng.integers(-9, 9, 2000), [0.0, 1.0]])
    expected = np.array([float(f"{value:.6g}") for value in x])
    np.testing.assert_array_equal(rounded(x), expected)
    np.testing.assert_array_equal(rounded(expected), expected)


def test_promises_of_each_class_are_watched_by_class(folder: Path, moved: Path) -> None:
    from ova.modelfolder.watching import model_of, outcomes, promised
    from ova.predictions import Predictions

    draw, model = np.random.default_rng(0), model_of(folder)
    k = draw.integers(3, size=3000)
    c = np.round(draw.random(3000), 3)
    said = Predictions(
        id=np.arange(3000), target=k, prediction=k, confidence=c, classes=3, normalised=False
    )
    each = fit_threshold(said, accuracy=0.9, per="class")
    assert dict(promised(each, model.classes)) == {
        f"accuracy of {name!r}": 0.9 for name in model.classes
    }
    log = read_log([moved], model.classes, Labels())
    by_class = replace(model, threshold=each)
    arrived = np.flatnonzero(log.target >= -1)
    parts = [outcomes(f"accuracy of {n!r}", log, arrived, by_class) for n in model.classes]
    whole = outcomes("accuracy", log, arrived, by_class)
    assert sorted(np.concatenate([rows for _, rows in parts])) == whole[1].tolist()
    for number, (good, rows) in enumerate(parts):
        assert (log.answer[rows] == number).all()
        assert (good == (log.target[rows] == number)).all()
    share, rows = outcomes("coverage", log, arrived, by_class)
    assert len(rows) == len(log)
    assert share.mean() == (log.answer >= 0).mean()
