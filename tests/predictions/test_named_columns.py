"""Predictions as people have them: whatever the columns are called, the numbers are those of p_0, p_1, ..."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import ova
from ova.cli.app import app
from ova.errors import BadInput
from ova.predictions import Predictions, Reading, read_any
from ova.predictions.formats.wanted import told

NAMES = ["cat", "dog", "tree frog"]


def made(n=60, seed=0):
    r = np.random.default_rng(seed)
    z = r.normal(0, 2, (n, 3))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    return z, p, r.integers(0, 3, n)


def save(path, table):
    if path.suffix == ".csv":
        table.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    elif path.suffix == ".feather":
        table.to_feather(path)
    else:
        rows = table.to_dict("records")
        path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def columns(prefix, p):
    return {f"{prefix}{name}": p[:, k] for k, name in enumerate(NAMES)}


def words(y):
    return [NAMES[k] for k in y]


# How people call things, and what must be said where it cannot be known.
WAYS = {
    "prefixed": (lambda z, p, y: columns("proba_", p) | {"y_true": words(y)}, []),
    "prefixed, label first": (lambda z, p, y: {"label": words(y)} | columns("prob.", p), []),
    "prefixed, with y_pred": (
        lambda z, p, y: columns("p_", p) | {"y_true": words(y), "y_pred": words(p.argmax(1))},
        [],
    ),
    "names alone": (lambda z, p, y: columns("", p) | {"label": words(y)}, []),
    "numbered prob_": (
        lambda z, p, y: {f"prob_{k}": p[:, k] for k in range(3)} | {"y_true": y},
        [],
    ),
    "numbered, words": (
        lambda z, p, y: {f"p_{k}": p[:, k] for k in range(3)} | {"target": words(y)},
        ["classes=cat,dog,tree frog"],
    ),
    "named, numbers": (
        lambda z, p, y: columns("proba_", p) | {"y_true": y},
        ["probs=proba_cat,proba_dog,proba_tree frog"],
    ),
    "all said": (
        lambda z, p, y: columns("score of ", p) | {"truth": words(y), "row": np.arange(len(y)) * 7},
        ["target=truth", "probs=score of *", "classes=cat,dog,tree frog"],
    ),
}
ENDINGS = (".csv", ".parquet", ".jsonl", ".feather")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("way", WAYS)
def test_the_numbers_are_those_of_numbered_columns(tmp_path, way, ending):
    z, p, y = made()
    table, say = WAYS[way]
    path = save(tmp_path / f"a{ending}", pd.DataFrame(table(z, p, y)))
    found = read_any(path, Reading(columns=told(say)))
    wanted = Predictions.from_probs(p, y, normalised=True)
    np.testing.assert_array_equal(found.target, wanted.target)
    np.testing.assert_array_equal(found.prediction, wanted.prediction)
    np.testing.assert_allclose(found.confidence, wanted.confidence, rtol=1e-12)


@pytest.mark.parametrize("link", ["softmax", "sigmoid"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_logits_are_read_by_the_link_that_was_said(tmp_path, link, ending):
    z, p, y = made()
    p = p if link == "softmax" else 1 / (1 + np.exp(-z))
    wanted = Predictions.from_probs(p, y, normalised=link == "softmax")
    numbered = {f"logit_{k}": z[:, k] for k in range(3)}
    for number, table in enumerate(
        (
            {"logits": z.tolist(), "target": y},
            numbered | {"target": y},
            columns("logits_", z) | {"y": words(y)},
        )
    ):
        if ending == ".csv" and "logits" in table:
            continue  # a cell of CSV is no list
        path = save(tmp_path / f"{number}{ending}", pd.DataFrame(table))
        with pytest.raises(BadInput, match="--logits softmax"):
            read_any(path)
        found = read_any(path, Reading(link == "softmax", logits=link))
        np.testing.assert_allclose(found.confidence, wanted.confidence, rtol=1e-9)
        np.testing.assert_array_equal(found.target, y)
        assert found.normalised is (link == "softmax")


REFUSED = {
    "numbers for names": (
        lambda p, y: columns("proba_", p) | {"target": y},
        "target has numbers, but the columns are of cat, dog, tree frog; which is 0",
    ),
    "names for numbers": (
        lambda p, y: {f"p_{k}": p[:, k] for k in range(3)} | {"target": words(y)},
        "--columns classes=",
    ),
    "a label without a column": (
        lambda p, y: columns("proba_", p) | {"target": [*words(y)[:-1], "fish"]},
        "row 59: target is 'fish', but the classes are cat, dog, tree frog",
    ),
    "two kinds of probabilities": (
        lambda p, y: columns("proba_", p) | columns("score_", p) | {"target": words(y)},
        "both look like probabilities; say --columns probs=",
    ),
    "a column that is none": (
        lambda p, y: columns("", p) | {"age": p[:, 0], "target": words(y)},
        "row 0: the probabilities sum to",
    ),
    "an order that its own answers contradict": (
        lambda p, y: (
            columns("proba_", p[:, ::-1]) | {"y_true": words(y), "y_pred": words(p.argmax(1))}
        ),
        r"row \d+: it predicts .*, but the largest probability is that of",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("ending", ENDINGS)
def test_what_could_be_meant_otherwise_is_asked_for(tmp_path, case, ending):
    _, p, y = made()
    table, message = REFUSED[case]
    path = save(tmp_path / f"a{ending}", pd.DataFrame(table(p, y)))
    with pytest.raises(BadInput, match=message):
        read_any(path)


def test_columns_named_after_classes_are_not_guessed_without_labels_or_sums(tmp_path):
    _, p, y = made()
    path = save(tmp_path / "a.csv", pd.DataFrame(columns("", p) | {"label": words(y)}))
    for how in (Reading(outside=True), Reading(normalised=False)):
        with pytest.raises(BadInput, match="--columns says which columns these are"):
            read_any(path, how)
    said = Reading(outside=True, columns=told(["target=label", "probs=cat,dog,tree frog"]))
    assert (read_any(path, said).target == -1).all()


def test_words_without_probabilities_are_right_where_they_agree(tmp_path):
    _, p, y = made()
    said = p.argmax(1)
    table = {"confidence": p.max(1), "y_pred": words(said), "label": words(y)}
    found = read_any(save(tmp_path / "a.csv", pd.DataFrame(table)))
    np.testing.assert_array_equal(found.correct, said == y)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_pattern_is_one_file_in_parts(tmp_path, ending):
    _, p, y = made()
    table = pd.DataFrame(columns("proba_", p) | {"label": words(y)})
    for number, rows in enumerate(np.array_split(np.arange(60), 3)):
        save(tmp_path / f"part-{number}{ending}", table.iloc[rows])
    whole = read_any(save(tmp_path / f"whole{ending}", table))
    found = read_any(tmp_path / f"part-*{ending}")
    for name in ("id", "target", "confidence"):
        np.testing.assert_array_equal(getattr(found, name), getattr(whole, name))
    with pytest.raises(BadInput, match="there is no file"):
        read_any(tmp_path / f"nothing-*{ending}")


def test_a_data_frame_in_memory_is_read_in_the_same_way():
    _, p, y = made()
    wanted = ova.evaluate(y, p).to_dict()
    for table in (
        columns("proba_", p) | {"label": words(y)},
        {"probs": p.tolist(), "y_true": y},
    ):
        assert ova.evaluate(pd.DataFrame(table)).to_dict() == wanted


def test_what_is_said_of_columns_must_make_sense(tmp_path):
    for wrong in (
        ["truth"],
        ["truth=a"],
        ["target="],
        ["target=a,b"],
        ["id=a", "id=b"],
        ["probs=a", "logits=b"],
    ):
        with pytest.raises(BadInput, match="--columns"):
            told(wrong)
    _, p, y = made()
    path = save(tmp_path / "a.csv", pd.DataFrame(columns("proba_", p) | {"label": words(y)}))
    for wrong in (
        ["target=truth"],
        ["probs=score*"],
        ["probs=proba_cat,proba_c*"],
        ["classes=cat,dog"],
    ):
        with pytest.raises(BadInput):
            read_any(path, Reading(columns=told(wrong)))


def run(*args):
    done = CliRunner().invoke(app, ["evaluate", *map(str, args)])
    return done.exit_code, done.stdout, done.stderr


def test_the_command_prints_its_guess_and_takes_what_it_is_told(tmp_path):
    z, p, y = made()
    plain = save(
        tmp_path / "m.csv", pd.DataFrame({f"p_{k}": p[:, k] for k in range(3)} | {"target": y})
    )
    code, wanted, told_of = run(plain)
    assert (code, told_of) == (0, "")
    (tmp_path / "b").mkdir()
    named = pd.DataFrame(columns("proba_", p) | {"y_true": words(y)})
    guessed = save(tmp_path / "b" / "m.jsonl", named)
    code, found, told_of = run(guessed)
    assert (code, found) == (0, wanted)
    assert (
        told_of
        == "m.jsonl: target is 'y_true', probs are 'proba_cat', 'proba_dog', 'proba_tree frog' (3 classes)\n"
    )
    raw = save(tmp_path / "b" / "m.csv", pd.DataFrame(columns("z_", z) | {"truth": words(y)}))
    code, found, told_of = run(raw, "--columns", "target=truth", "--logits", "softmax")
    assert code == 0
    assert "accuracy" in found
    assert "logits are 'z_cat'" in told_of


def test_every_other_prefix_reads_like_the_first():
    from ova.predictions.formats.layout import places_of
    from ova.predictions.formats.wanted import Wanted

    for prefix in ("p_", "prob_", "probs_", "proba_", "probability_", "Proba ", "score_"):
        places = places_of(["label", *(f"{prefix}{name}" for name in NAMES)], Wanted())
        assert places["classes"] == NAMES


def test_the_parts_of_a_pattern_are_one_model_and_are_never_written_over(tmp_path):
    _, p, y = made()
    table = pd.DataFrame(columns("proba_", p) | {"label": words(y)})
    parts = [
        save(tmp_path / f"part-{i}.csv", table.iloc[rows])
        for i, rows in enumerate(np.split(np.arange(60), 3))
    ]
    before = [part.read_bytes() for part in parts]
    rows = tmp_path / "rows.jsonl"
    code, _, _ = run(tmp_path / "part-*.csv", "-o", tmp_path / "page.html", "--measurements", rows)
    assert code == 0
    assert json.loads(rows.read_text().splitlines()[0])["n"] == 60
    assert (tmp_path / "page.html").exists()
    refused = CliRunner().invoke(
        app, ["evaluate", str(tmp_path / "part-*.csv"), "--measurements", str(parts[1])]
    )
    assert isinstance(refused.exception, BadInput)
    fitted = ["calibrate", str(tmp_path / "part-*.csv"), "--fit", str(parts[2])]
    refused = CliRunner().invoke(app, fitted)
    assert isinstance(refused.exception, BadInput)
    assert "part-2.csv is also what --fit names" in str(refused.exception)
    assert [part.read_bytes() for part in parts] == before


@pytest.mark.parametrize("ending", [".jsonl", ".feather", ".arrow"])
def test_a_damaged_file_is_a_sentence(tmp_path, ending):
    import pyarrow as pa

    _, p, y = made()
    table = pd.DataFrame(columns("proba_", p) | {"label": words(y)})
    path = tmp_path / f"a{ending}"
    if ending == ".arrow":
        found = pa.Table.from_pandas(table, preserve_index=False)
        with pa.ipc.new_stream(path, found.schema) as stream:
            stream.write_table(found)
    else:
        save(path, table)
    whole, draw = path.read_bytes(), np.random.default_rng(0)
    said = []
    for turn in range(150):
        data = bytearray(whole)
        if turn % 3 == 0:
            data = data[: draw.integers(len(data))]
        else:
            for at in draw.integers(len(data), size=turn % 7 + 1):
                data[at] = draw.integers(256)
        path.write_bytes(data)
        try:
            read_any(path)
        except BadInput as error:
            said.append(str(error))
    assert len(said) > 50
    assert all(str(path) in each for each in said)
