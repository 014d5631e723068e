"""Predictions to rows and curves, and the command that does it for anybody's files."""

import json
import sys
import weakref
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ova.cli.evaluate import spread
from ova.errors import BadInput
from ova.metrics import DETECTION, METRICS, Draws
from ova.metrics.evaluate import evaluate
from ova.metrics.model_files import assign, labels
from ova.metrics.selective import GRID
from ova.predictions import Predictions
from ova.scores import SCORES

CURVES = {
    "reliability": {"lower", "upper", "count", "confidence", "accuracy"},
    "accuracy_confidence": {"threshold", "kept", "accuracy", "answered"},
    "histogram": {"lower", "upper", "right", "wrong", "outside"},
    "roc": {"fpr", "tpr"},
    "precision_recall": {"recall", "precision"},
    "risk_coverage": {"coverage", "risk"},
}


def said(n=300, *, outside=False, normalised=True, seed=0, signal=2.0):
    r = np.random.default_rng(seed)
    z, y = r.normal(size=(n, 5)), r.integers(0, 5, n)
    if not outside:
        z[np.arange(n), y] += signal
    log_p = z - np.logaddexp.reduce(z, 1)[:, None] if normalised else -np.logaddexp(0, -z)
    y = np.full(n, -1) if outside else y
    return Predictions.from_logits(z, log_p, y, normalised=normalised, keep_probs=not outside)


def sets(normalised=True):
    shifted = {
        f"shift/{kind}/{s}": said(100, seed=s, signal=2 - s / 2, normalised=normalised)
        for kind in ("fog", "snow")
        for s in (1, 2)
    }
    return {
        "ood/noise": said(200, outside=True, seed=5, normalised=normalised),
        "test": said(normalised=normalised),
        "validation": said(50, seed=9, normalised=normalised),
        **shifted,
    }


@pytest.mark.parametrize("normalised", [True, False])
def test_rows_and_curves_are_complete_and_plain_json(normalised):
    rows, curves = evaluate(sets(normalised))
    text = json.dumps([rows, curves], allow_nan=False)
    assert json.loads(text) == [rows, curves]
    for name in ("test", "validation", "shift/fog/1"):
        assert [r["metric"] for r in rows if r["dataset"] == name] == list(METRICS)
    found = {
        (r["metric"], r["score"]) for r in rows if r["dataset"] == "ood/noise" and "score" in r
    }
    free = [name for name, score in SCORES.items() if score.column is not None]
    assert {(d, s) for d in DETECTION for s in free} <= found
    assert {("auroc_200", "max_p"), ("aupr_outside_200", "max_p")} <= found
    undefined = {r["metric"] for r in rows if r["value"] is None}
    ours, theirs = {"nll", "brier"}, {"nll_one_vs_all", "brier_one_vs_all"}
    assert undefined == (theirs if normalised else ours)
    assert {c["curve"] for c in curves} == set(CURVES)
    for curve in curves:
        assert set(curve["columns"]) == CURVES[curve["curve"]]
        assert len({len(column) for column in curve["columns"].values()}) == 1


def test_parameters_are_recorded_with_the_value():
    rows, _ = evaluate(sets())
    ece = next(r for r in rows if r["dataset"] == "test" and r["metric"] == "ece")
    assert (ece["bins"], ece["rule"], ece["n"]) == (15, "equal-width", 300)
    found = {(r["metric"], r.get("positive")) for r in rows if r["metric"].startswith("aupr_")}
    assert {("aupr_inside", "inside"), ("aupr_outside", "outside")} <= found


def test_the_same_predictions_give_the_same_rows_in_any_order_of_sets():
    one, two = evaluate(sets()), evaluate(dict(reversed(sets().items())))
    assert one == two


def test_only_test_and_one_other_set_are_in_memory():
    made: list[weakref.ref[Predictions]] = []
    most: list[int] = []

    def maker(name):
        def make():
            most.append(sum(seen() is not None for seen in made))
            p = said(20, outside=name.startswith("ood/"))
            made.append(weakref.ref(p))
            return p

        return make

    evaluate({name: maker(name) for name in sets()})
    assert len(made) == len(sets())
    assert max(most) == 1  # the test set, when another is made


def test_shift_is_aggregated_over_types_then_severities():
    rows, curves = evaluate(sets())
    value = {(r["dataset"], r["metric"]): r["value"] for r in rows}
    mild = [value[f"shift/{kind}/1", "ece"] for kind in ("fog", "snow")]
    strong = [value[f"shift/{kind}/2", "ece"] for kind in ("fog", "snow")]
    assert value["shift/*/1", "ece"] == pytest.approx(np.mean(mild))
    assert value["shift", "ece"] == pytest.approx((np.mean(mild) + np.mean(strong)) / 2)
    box = next(r for r in rows if (r["dataset"], r["metric"]) == ("shift/*/2", "ece"))
    assert (box["minimum"], box["maximum"], box["types"]) == (min(strong), max(strong), 2)
    assert box["lower_quartile"] <= box["median"] <= box["upper_quartile"]
    pooled = [c for c in curves if c["dataset"] == "shift/*/2" and c["curve"] == "reliability"]
    assert sum(pooled[0]["columns"]["count"]) == 200


def test_mixing_in_outside_examples_lowers_the_accuracy_at_every_threshold():
    _, curves = evaluate(sets())
    found = {c["dataset"]: c["columns"] for c in curves if c["curve"] == "accuracy_confidence"}
    alone, mixed = found["test"], found["test+ood/noise"]
    assert alone["threshold"] == GRID.tolist()
    assert (alone["answered"][0], alone["kept"][0], mixed["kept"][0]) == (1, 300, 500)
    for a, b, kept in zip(alone["accuracy"], mixed["accuracy"], mixed["kept"], strict=True):
        assert (a is None) or b <= a
        assert (b is None) == (kept == 0)


def test_infinite_loss_is_null_with_a_reason():
    p = Predictions.from_probs([[1.0, 0.0]], [1], normalised=True)
    for draws in (None, Draws(count=9)):
        row = next(r for r in evaluate({"test": p}, draws)[0] if r["metric"] == "nll")
        assert row["value"] is None
        assert "probability 0" in row["why"]
        json.dumps(row, allow_nan=False)


def test_intervals_are_added_on_request():
    rows, _ = evaluate({"test": said(60), "ood/x": said(40, outside=True)}, Draws(count=20))
    without = {"mce", "rms_calibration_error", "ece_classwise", "auroc_200", "aupr_outside_200"}
    for row in rows:
        if row["value"] is not None and row["metric"] not in without:
            assert row["low"] <= row["high"], row
            assert row["draws"] == 20
        else:
            assert not {"low", "high", "draws"} & set(row)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"ood/x": said(9, outside=True)}, "set `test`, which is missing"),
        ({"test": said(9).take(slice(0, 0))}, "test is empty"),
        ({"test": said(9), "ood/x": said(9)}, "ood/x, row 0: an OOD example has target -1"),
        ({"test": said(9, outside=True)}, "test, row 0: target -1"),
        ({"test": said(9), "shift/fog": said(9)}, "shift/<type>/<severity>, not 'shift/fog'"),
    ],
)
def test_sets_in_the_wrong_role_are_refused(broken, message):
    with pytest.raises(BadInput, match=message):
        evaluate(broken)


def test_options_take_all_names_up_to_the_next():
    assert spread(["a", "--ood", "b", "c", "--shift", "d", "e", "-o", "f"]) == [
        "a", "--ood", "b", "--ood", "c", "--shift", "d", "--shift", "e", "-o", "f",
    ]  # fmt: skip
    assert spread(["a", "b", "--seed", "1"]) == ["a", "b", "--seed", "1"]


def touched(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return [folder / name for name in names]


def test_files_find_their_models_by_name_or_folder(tmp_path):
    files = touched(tmp_path, "ova.csv", "ova-dm.csv")
    ood = touched(tmp_path, "ova-svhn.csv", "ova-dm-svhn.csv")
    shift = touched(tmp_path, "ova-fog-1.csv", "ova-dm_frosted_glass_12.csv")
    first, second = assign(files, ood, shift)
    assert list(first.sets) == ["test", "ood/svhn", "shift/fog/1"]
    assert list(second.sets) == ["test", "ood/svhn", "shift/frosted_glass/12"]

    files = touched(tmp_path, "a/test.parquet", "b/test.parquet")
    touched(tmp_path, "b/ood/svhn.parquet", "b/shift/fog/3.parquet")
    first, second = assign(files, [tmp_path / "b" / "ood"], [tmp_path / "b" / "shift"])
    assert (first.name, second.name) == ("a/test", "b/test")
    assert list(first.sets) == ["test"]
    assert list(second.sets) == ["test", "ood/svhn", "shift/fog/3"]


def test_files_without_a_place_are_refused(tmp_path):
    a, b, c, fog = touched(tmp_path, "a.csv", "b.csv", "c.csv", "fog.csv")
    with pytest.raises(BadInput, match="to which model does it belong"):
        assign([a, b], [c], [])
    with pytest.raises(BadInput, match="kind and strength of the change"):
        assign([a], [], [fog])
    with pytest.raises(BadInput, match="would both be ood/c"):
        assign([a], [c, c], [])
    with pytest.raises(BadInput, match="is given twice"):
        labels([a, a])
    with pytest.raises(BadInput, match="there is no file"):
        assign([tmp_path / "absent.csv"], [], [])
    (tmp_path / "empty").mkdir()
    with pytest.raises(BadInput, match=r"no .*\.csv.* file in"):
        assign([a], [tmp_path / "empty"], [])


ROWS = ("--measurements", "measurements.jsonl")


def run(monkeypatch, *args: object) -> int:
    """The exit code of `ova evaluate` with these arguments."""
    from ova.cli.app import main

    monkeypatch.setattr(sys, "argv", ["ova", "evaluate", *map(str, args)])
    with pytest.raises(SystemExit) as done:
        main()
    return int(done.value.code or 0)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Two models with their sets, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for model in ("one", "two"):
        for name, p in sets().items():
            mark = "" if name == "test" else "-" + "-".join(name.split("/")[1:])
            if name != "validation":
                np.savez(f"{model}{mark}.npz", probs=said_probs(p), target=p.target)
    return tmp_path


def said_probs(p: Predictions):
    if p.probs is not None:
        return p.probs
    return np.random.default_rng(0).dirichlet(np.ones(5), len(p))


def test_the_command_prints_a_table_and_writes_rows(files, monkeypatch, capsys):
    shift = sorted(files.glob("one-*-?.npz"))
    assert run(monkeypatch, "one.npz", "--ood", "one-noise.npz", "--shift", *shift, *ROWS) == 0
    out = capsys.readouterr().out
    for word in ("accuracy", "ece", "ood/noise", "auroc by max_p", "severity 2"):
        assert word in out
    rows = [json.loads(line) for line in Path("measurements.jsonl").read_text().splitlines()]
    assert {"test", "ood/noise", "shift/fog/1", "shift/*/2", "shift"} <= {
        r["dataset"] for r in rows
    }
    expected, _ = evaluate({"test": sets()["test"]})
    value = {r["metric"]: r["value"] for r in rows if r["dataset"] == "test"}
    assert value["ece"] == pytest.approx(expected[6]["value"])


def test_two_models_are_compared_on_the_same_examples(files, monkeypatch, capsys):
    assert run(monkeypatch, "one.npz", "two.npz", "--bootstrap", 20, *ROWS) == 0
    assert "difference to one" in capsys.readouterr().out
    rows = [json.loads(line) for line in Path("measurements.jsonl").read_text().splitlines()]
    assert {r["model"] for r in rows} == {"one", "two"}
    difference = next(r for r in rows if r["metric"] == "accuracy_difference")
    assert (difference["value"], difference["low"], difference["against"]) == (0, 0, "one")


@pytest.mark.parametrize("broken", ["logits", "label", "nan", "empty", "lengths", "absent"])
def test_bad_input_exits_with_two_and_writes_nothing(files, monkeypatch, capsys, broken):
    p, y = said_probs(sets()["test"]).copy(), sets()["test"].target.copy()
    if broken == "logits":
        p = np.log(p)
    elif broken == "label":
        y[17] = 5
    elif broken == "nan":
        p[17, 0] = np.nan
    elif broken == "empty":
        p, y = p[:0], y[:0]
    elif broken == "lengths":
        y = y[:-1]
    if broken != "absent":
        np.savez("bad.npz", probs=p, target=y)
    before = sorted(files.iterdir())
    assert run(monkeypatch, "bad.npz", "--ood", "one-noise.npz", "-o", "report.html") == 2
    error = capsys.readouterr().err
    assert "bad.npz" in error
    assert "row 17" in error or broken not in ("label", "nan")
    assert sorted(files.iterdir()) == before


def test_an_outside_file_alone_or_without_rows_is_refused(files, monkeypatch, capsys):
    pd.DataFrame({"p_0": [], "p_1": []}).to_csv("none.csv", index=False)
    assert run(monkeypatch, "one.npz", "--ood", "none.csv") == 2
    assert "no rows" in capsys.readouterr().err
    assert run(monkeypatch, "--ood", "one-noise.npz", *ROWS) == 2
    assert not Path("measurements.jsonl").exists()


def test_the_report_is_one_file(files, monkeypatch):
    assert run(monkeypatch, "one.npz", "--ood", "one-noise.npz", "-o", "report.html") == 0
    assert "<html" in Path("report.html").read_text(encoding="utf-8")[:2000].lower()


def test_the_report_needs_no_folder_in_between(files, monkeypatch):
    monkeypatch.setattr("tempfile.mkdtemp", lambda *_, **__: pytest.fail("a folder was made"))
    assert run(monkeypatch, "one.npz", "two.npz", "-o", "report.html") == 0
    text = Path("report.html").read_text(encoding="utf-8")
    assert [text.count(f"<code>evaluate/{number}</code>") for number in (0, 1)] == [1, 1]
