"""One column of probabilities for two classes: its class is asked for, and the numbers are those of both columns."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from ova.cli.app import app
from ova.errors import BadInput
from ova.predictions import Predictions, Reading, read_any
from ova.predictions.formats.wanted import told

# How people write two classes: the label of the one that the column is of, and of the other.
LABELS = {"words": ("yes", "no"), "numbers": (1, 0), "signs": (1, -1), "turned": (0, 1)}
ENDINGS = (".csv", ".parquet", ".jsonl", ".feather", ".npz")


def made(kind: str, n: int = 80) -> tuple[np.ndarray, np.ndarray, list]:
    """Probabilities of a class, whether it is it, and the labels."""
    draw = np.random.default_rng(3)
    p, y = draw.random(n).round(6), draw.integers(0, 2, n)
    one, other = LABELS[kind]
    return p, y, [one if each else other for each in y]


def save(path, table):
    frame = pd.DataFrame(table)
    if path.suffix == ".npz":
        arrays: dict[str, Any] = {name: np.array(column) for name, column in table.items()}
        np.savez(path, **arrays)
    elif path.suffix == ".jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        write = {".csv": frame.to_csv, ".parquet": frame.to_parquet, ".feather": frame.to_feather}
        write[path.suffix](path, **({"index": False} if path.suffix == ".csv" else {}))
    return path


def reading(*said: str) -> Reading:
    return Reading(columns=told(said))


@pytest.mark.parametrize("name", ["y_prob", "Y_score", "proba", "chance"])
@pytest.mark.parametrize("kind", LABELS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_it_reads_like_the_columns_of_both_classes(tmp_path, ending, kind, name):
    p, y, labels = made(kind)
    path = save(tmp_path / f"a{ending}", {"y_true": labels, name: p, "y_pred": [7] * len(p)})
    with pytest.raises(BadInput, match=r"positive=|--columns says"):
        read_any(path)
    say = ["probs=chance"] if name == "chance" else []
    found = read_any(path, reading(*say, f"positive={LABELS[kind][0]}"))
    wanted = Predictions.from_probs(np.stack([1 - p, p], 1), y, normalised=True)
    for column in ("target", "prediction", "confidence"):
        np.testing.assert_array_equal(getattr(found, column), getattr(wanted, column))


def test_truth_values_are_labels_too(tmp_path):
    p, y, _ = made("numbers")
    path = save(tmp_path / "a.parquet", {"label": y.astype(bool), "y_prob": p})
    np.testing.assert_array_equal(read_any(path, reading("positive=True")).target, y)
    np.testing.assert_array_equal(read_any(path, reading("positive=false")).target, 1 - y)


def test_the_parts_of_a_pattern_know_the_same_two_labels(tmp_path):
    p, y, labels = made("words")
    order = np.argsort(y, kind="stable")  # the first part has one label alone
    table = pd.DataFrame({"label": np.array(labels)[order], "y_prob": p[order]})
    for number, rows in enumerate(np.array_split(np.arange(len(p)), 4)):
        table.iloc[rows].to_csv(tmp_path / f"part-{number}.csv", index=False)
    found = read_any(tmp_path / "part-*.csv", reading("positive=yes"))
    np.testing.assert_array_equal(found.target, y[order])
    pd.DataFrame({"label": ["perhaps"], "y_prob": [0.5]}).to_csv(
        tmp_path / "part-9.csv", index=False
    )
    with pytest.raises(
        BadInput, match="row 80: target is 'perhaps', but there is 'no' besides 'yes'"
    ):
        read_any(tmp_path / "part-*.csv", reading("positive=yes"))


REFUSED = {
    "another spelling": (["yes", "no"], [0.5, 0.5], ["positive=Yes"], "row 0: target is 'yes'"),
    "a word for numbers": ([0, 1], [0.5, 0.5], ["positive=yes"], "the labels are numbers"),
    "a missing label": (
        ["yes", None, "no"],
        [0.5] * 3,
        ["positive=yes"],
        "row 1: target is missing",
    ),
    "a third": ([0, 1, 2], [0.5] * 3, ["positive=1"], "row 2: target is '2'"),
    "no probability": ([0, 1], [0.5, 1.5], ["positive=1"], "row 1"),
    "two classes said": ([0, 1], [0.5, 0.5], ["classes=0,1"], "could be of either class"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused(tmp_path, case):
    labels, p, said, message = REFUSED[case]
    path = save(tmp_path / "a.parquet", {"label": labels, "y_score": p})
    with pytest.raises(BadInput, match=message):
        read_any(path, reading(*said))


def test_a_class_is_said_of_a_lone_column_alone(tmp_path):
    path = save(tmp_path / "a.csv", {"label": [0, 1], "p_0": [0.5, 0.5], "p_1": [0.5, 0.5]})
    with pytest.raises(BadInput, match="is of a lone column"):
        read_any(path, reading("positive=1"))
    path = save(tmp_path / "b.csv", {"label": [0, 1], "y_prob": [0.5, 0.5]})
    with pytest.raises(BadInput, match="not one-vs-all"):
        read_any(path, Reading(normalised=False, columns=told(["positive=1"])))
    with pytest.raises(BadInput, match="positive is one class"):
        told(["positive=a,b"])


def test_a_score_of_ones_own_beside_probabilities_stays_what_it_was(tmp_path):
    """What was read before is read as before, whatever else lies in the file."""
    p, y, labels = made("words")
    sure = np.maximum(p, 1 - p)
    tables: tuple[dict[str, Any], ...] = (
        {"label": labels, "proba_no": 1 - p, "proba_yes": p},
        {"label": y, "p_0": 1 - p, "p_1": p},
        {"label": y, "confidence": sure, "prediction": (p > 0.5).astype(int)},
    )
    for number, table in enumerate(tables):
        path = save(tmp_path / f"{number}.parquet", table | {"y_score": p * 9})
        np.testing.assert_array_equal(read_any(path).correct, (p > 0.5) == y)


def test_the_command_takes_it_for_the_test_set_and_for_what_lies_outside(tmp_path):
    p, y, labels = made("words")
    lone = save(tmp_path / "m.csv", {"y_true": labels, "y_prob": p})
    far = save(tmp_path / "far.csv", {"y_prob": p[:20] / 2})
    both = save(tmp_path / "b.csv", {"target": y, "p_0": 1 - p, "p_1": p})
    near = save(tmp_path / "near.csv", {"p_0": 1 - p[:20] / 2, "p_1": p[:20] / 2})
    run = CliRunner().invoke
    found = run(app, ["evaluate", str(lone), "--ood", str(far), "--columns", "positive=yes"])
    wanted = run(app, ["evaluate", str(both), "--ood", str(near)])
    assert found.exit_code == wanted.exit_code == 0, (found.output, found.exception)

    def numbers(said: str) -> list[str]:
        return [word for word in said.split() if word[:1].isdigit()]

    assert numbers(found.stdout) == numbers(wanted.stdout) != []
    assert "probs is 'y_prob'" in found.stderr
