"""Train, predict and export, for images, texts and tables: one model each, used by all tests."""

import csv
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file
from typer.testing import CliRunner

import made_data
from narrowing import there
from ova.cli.app import app
from ova.errors import BadInput
from ova.files import read_lines, write_json
from ova.modelfolder.answer import Answer, answers
from ova.modelfolder.export import export
from ova.modelfolder.folder import Model, digest, load
from ova.modelfolder.train import train
from ova.modelfolder.write import COLUMNS, WRITERS, write
from ova.posthoc.threshold import Promise
from ova.predictions import NONE, NONE_LABEL, read
from ova.training import checkpoint
from ova.training.engine import Machine, launch
from ova.userdata.gather import Gathered, gather
from ova.userdata.kinds import KINDS
from ova.userdata.request import Request
from ova.userdata.rows import whole

QUICK = ("epochs=4", "batch_size=16")


@dataclass(frozen=True)
class Case:
    kind: str
    wish: Request
    gathered: Gathered
    out: Path


MAKERS: dict[str, Callable[[Path], Request]] = {
    "image": lambda at: Request(data=made_data.pictures(at / "colours")),
    "text": lambda at: Request(
        data=made_data.sentences(at / "topics.csv"), text="sentence", label="topic"
    ),
    "table": lambda at: Request(data=made_data.table(at / "table.csv")),
}


def fit(gathered: Gathered, out: Path, stop: int | None = None) -> None:
    machine = Machine(accelerator="cpu")
    wanted = Promise(coverage=0.5)
    for number, _ in enumerate(train(launch(machine), gathered, out, machine, wanted)):
        if number == stop:
            break


@pytest.fixture(scope="session", params=KINDS)
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    at = tmp_path_factory.mktemp(request.param)
    made = MAKERS[request.param](at)
    wish = Request(data=made.data, text=made.text, label=made.label, settings=QUICK)
    gathered = gather(wish)
    fit(gathered, at / "model")
    return Case(request.param, wish, gathered, at / "model")


@pytest.fixture(scope="session")
def model(case: Case) -> Model:
    return load(case.out)


def test_the_page_says_what_the_model_promises(case: Case, model: Model) -> None:
    page = (case.out / "report.html").read_text()
    assert "What does this model promise?" in page
    assert "at least 50\N{NO-BREAK SPACE}% of the inputs are answered" in page
    assert f"It rests on {model.threshold.n:,} held-out examples" in page
    why_not = isinstance(model.calibration, str)
    calibrated = "are not calibrated" if why_not else "Calibrated by the method top"
    assert calibrated in page


def test_a_model_learns_and_its_folder_holds_nothing_that_runs(case: Case) -> None:
    rows = read_lines(case.out / "run/measurements.jsonl")
    accuracy = {r["dataset"]: r["value"] for r in rows if r["metric"] == "accuracy"}
    assert accuracy["test"] > 0.8, accuracy
    endings = {path.suffix for path in case.out.rglob("*") if path.is_file()}
    assert endings <= {".json", ".jsonl", ".safetensors", ".parquet", ".html"}
    assert (case.out / "report.html").stat().st_size > 10_000


def test_predict_says_what_the_run_said(case: Case, model: Model) -> None:
    """The rows of the test part, read again from the file, get the confidences of the run."""
    said = list(answers(model, [str(case.wish.data)]))
    run = read(case.out / "run/predictions/test.parquet")
    frame = whole(case.wish.data)
    assert len(said) == len(frame)
    everything = model.preparation.encode(frame).x
    place = {row.tobytes(): i for i, row in enumerate(everything.numpy())}
    part = case.gathered.task.evaluations["test"]()
    for i, x in enumerate(part.x):  # type: ignore[attr-defined]
        answer = said[place[x.numpy().tobytes()]]
        assert answer.confidence == pytest.approx(float(run.confidence[i]), abs=1e-5)
        expected = model.classes[run.prediction[i]]
        assert answer.label in (expected, NONE_LABEL)
        assert (answer.label == NONE_LABEL) == (there(answer.score) <= model.threshold.value)


def test_refusals_name_the_best_guess(case: Case, model: Model) -> None:
    inputs = [str(case.wish.data)]
    all_answered, none_answered = (list(answers(model, inputs, t)) for t in (-1.0, 1.0))
    assert all(a.label == NONE_LABEL for a in none_answered)
    assert [a.best_guess for a in none_answered] == [a.label for a in all_answered]
    assert all(a.label == a.best_guess for a in all_answered)
    assert all(a.best_guess != a.runner_up for a in [*all_answered, *none_answered])


def test_columns_that_are_kept_go_with_their_rows(case: Case, model: Model, tmp_path: Path) -> None:
    if case.kind == "image":
        with pytest.raises(BadInput, match=r"no column 'id' \(--keep"):
            list(answers(model, [str(case.wish.data)], keep=["id"]))
        return
    frame, label = whole(case.wish.data), case.wish.label or "label"
    names = [*frame.columns, "id"]
    rows = zip(*frame.columns.values(), (f"=a{i}" for i in range(len(frame))), strict=True)
    data = made_data.write_csv(tmp_path / "with_id.csv", names, rows)
    plain, keeping = (list(answers(model, [str(data)], keep=k)) for k in ([], [label, "id"]))
    called = "label (given)" if label == "label" else label
    for ending in WRITERS:
        out = tmp_path / f"kept{ending}"
        write(out, keeping, (*COLUMNS, called, "id"))
        said = whole(out).columns
        assert list(said["label"]) == [a.label for a in plain]
        assert list(said[called]) == list(frame.columns[label])
        mark = "'" if ending == ".csv" else ""  # no formula in a spreadsheet
        assert list(said["id"]) == [f"{mark}=a{i}" for i in range(len(frame))]


# `make check` writes images as ONNX with an encoder, in test_encoder.py.
EXPORTED = [pytest.param(k, marks=pytest.mark.slow) if k == "image" else k for k in KINDS]


@pytest.mark.parametrize("case", EXPORTED, indirect=True)
def test_onnx_decides_as_predict_does(case: Case, model: Model, tmp_path: Path) -> None:
    assert export(model, tmp_path / "m.onnx") <= 1e-5
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"))
    x = model.preparation.encode(whole(case.wish.data)).x
    probs, label, confident, score = session.run(None, {"input": x.numpy()})
    said = list(answers(model, [str(case.wish.data)]))
    names = [NONE_LABEL if k == NONE else model.classes[k] for k in label]
    near = [abs(there(a.score) - model.threshold.value) < 1e-5 for a in said]
    assert all(n == a.label for n, a, close in zip(names, said, near, strict=True) if not close)
    confidence = np.array([a.confidence for a in said])
    np.testing.assert_allclose(confident, confidence, atol=1e-5)
    # Among many copies of nearly one input products in float32 may miss the nearest by a hair.
    apart = np.abs(score - [there(a.score) for a in said])
    assert (apart < 1e-4 * np.maximum(np.abs(score), 1)).mean() > 0.95
    assert apart.max() < 0.1
    if isinstance(model.calibration, str):
        np.testing.assert_allclose(probs.max(1), confidence, atol=1e-5)
    assert 0 < (label == NONE).sum() < len(label)  # both kinds of answer were compared
    facts = {p.key: p.value for p in _metadata(tmp_path / "m.onnx")}
    assert json.loads(facts["ova.classes"]) == list(model.classes)


@pytest.mark.slow
def test_a_network_with_a_fixed_layer_from_data_is_exported_too(tmp_path: Path) -> None:
    wish = Request(data=made_data.pictures(tmp_path / "colours"), settings=(*QUICK, "model=quick"))
    fit(gather(wish), tmp_path / "model")
    assert export(load(tmp_path / "model"), tmp_path / "m.onnx") <= 1e-5


def _metadata(path: Path) -> list:
    import onnx

    return list(onnx.load(path).metadata_props)


def test_every_edit_of_a_model_folder_is_found_and_named(case: Case, tmp_path: Path) -> None:
    parts = [*json.loads((case.out / "model.json").read_text())["parts"], "model.json"]
    for name in parts:
        copy = tmp_path / name
        shutil.copytree(case.out, copy, ignore=shutil.ignore_patterns("run", "report.html"))
        content = (copy / name).read_bytes()
        middle = content.index(b'"certainty": 0.95') + 16 if name == "model.json" else -2
        changed = bytearray(content)
        changed[middle] ^= 1
        (copy / name).write_bytes(changed)
        with pytest.raises(BadInput, match=f"{name}.*changed after training.*SHA-256"):
            load(copy)
        (copy / name).unlink()
        with pytest.raises(BadInput, match=name):
            load(copy)


@pytest.mark.parametrize("case", ["table"], indirect=True)
@pytest.mark.parametrize("content", [b"[" * 100_000, b"[]", b"{}", b"\xff", b'{"format": NaN}'])
def test_a_model_that_says_nothing_is_named(case: Case, content: bytes, tmp_path: Path) -> None:
    shutil.copytree(case.out, tmp_path / "m", ignore=shutil.ignore_patterns("run"))
    (tmp_path / "m/model.json").write_bytes(content)
    with pytest.raises(BadInput, match=r"model\.json"):
        load(tmp_path / "m")


STRANGE: dict[str, dict[str, list[object]]] = {
    "image": {"size": [{}, 2**53, 0, 20_000], "mean": ["x", [{}, 0, 0], []], "std": [None]},
    "text": {"pad": [{}, -1, 2**53, None], "length": [{}, 0, True, 2**53], "column": [[]]},
    "table": {"columns": [[], [{}]], "mean": [[], [{}], "x"], "scale": [[1, 2, 3, 4, 5, 6, 7]]},
}


def test_a_model_whose_hashes_are_right_and_whose_parts_do_not_fit_is_a_sentence(
    case: Case, tmp_path: Path
) -> None:
    shutil.copytree(case.out, tmp_path / "m", ignore=shutil.ignore_patterns("run"))
    sound = json.loads((case.out / "model.json").read_text())
    del sound["sha256"]
    for field, values in STRANGE[case.kind].items():
        for value in values:
            content = {**sound, "preparation": {**sound["preparation"], field: value}}
            write_json(tmp_path / "m/model.json", {**content, "sha256": digest(content)})
            with pytest.raises(BadInput, match=f"{tmp_path}"):
                load(tmp_path / "m")


@pytest.mark.parametrize("case", ["table"], indirect=True)  # one is enough: they share the loop
def test_an_interrupted_training_ends_with_the_same_weights(case: Case, tmp_path: Path) -> None:
    epoch = -(-len(case.gathered.task.train) // 16)
    fit(gather(case.wish), tmp_path / "again", stop=2 * epoch + 5)
    assert not (tmp_path / "again/model.json").exists()
    fit(gather(case.wish), tmp_path / "again")
    first, second = (load_file(p / "weights.safetensors") for p in (case.out, tmp_path / "again"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("case", ["table"], indirect=True)
@pytest.mark.parametrize("left", [(), (".lock",), (".lock", ".recipe.json.part")])
def test_a_training_that_was_killed_before_its_recipe_goes_on(
    left: tuple[str, ...], case: Case, tmp_path: Path
) -> None:
    (tmp_path / "run").mkdir()
    for name in left:
        (tmp_path / "run" / name).touch()
    fit(case.gathered, tmp_path, stop=3)
    assert [path.name for path in (tmp_path / "run").glob(".*")] == []
    assert (tmp_path / "run/recipe.json").exists()


@pytest.mark.parametrize("case", ["table"], indirect=True)
@pytest.mark.parametrize("before", [False, True])  # the run is complete, only the model is not
def test_the_weights_are_read_once(
    before: bool, case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if before:
        shutil.copytree(case.out, tmp_path / "model")
    seen, really = [], checkpoint.load

    def noted(path: Path) -> tuple[checkpoint.Tensors, dict[str, str]]:
        seen.append(path.name)
        return really(path)

    monkeypatch.setattr(checkpoint, "load", noted)
    fit(case.gathered, tmp_path / "model")
    assert seen == ["best.safetensors"] * (not before) + ["weights.safetensors"]


def test_a_page_that_fails_does_not_cost_the_model(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(case.out, tmp_path / "model")
    (tmp_path / "model/model.json").unlink()

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "no space left on device")

    monkeypatch.setattr("ova.modelfolder.train.write_model_page", full)
    with pytest.raises(OSError, match="no space"):
        fit(case.gathered, tmp_path / "model")
    assert load(tmp_path / "model").classes == case.gathered.task.classes


def test_a_folder_of_something_else_is_left_alone(case: Case, tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(BadInput, match="not empty"):
        fit(case.gathered, tmp_path)
    other = MAKERS["table"](tmp_path)
    with pytest.raises(BadInput, match=r"other data|another recipe"):
        fit(gather(Request(data=other.data, settings=("epochs=5",))), case.out)


@pytest.mark.parametrize("ending", WRITERS)
def test_answers_are_written_in_order_in_every_format(
    case: Case, model: Model, ending: str, tmp_path: Path
) -> None:
    said = list(answers(model, [str(case.wish.data)]))
    write(tmp_path / f"said{ending}", iter(said))
    if ending == ".jsonl":
        rows = read_lines(tmp_path / "said.jsonl")
    else:
        frame = whole(tmp_path / f"said{ending}")
        rows = [{n: c[i] for n, c in frame.columns.items()} for i in range(len(frame))]
    assert [r["label"] for r in rows] == [a.label for a in said]
    got = [float(r["confidence"]) for r in rows]
    assert got == pytest.approx([a.confidence for a in said], abs=1e-5)
    with pytest.raises(BadInput, match="the ending says the format"):
        write(tmp_path / "said.xlsx", iter(said))


@pytest.mark.parametrize("ending", WRITERS)
def test_a_cell_of_a_stranger_is_no_formula_in_a_spreadsheet(ending: str, tmp_path: Path) -> None:
    cells = ["=cmd()", "+1+1", "-2+3", "@SUM(A1)", "\tx", "a=b", "-1", "+7", "1e3", ""]
    write(tmp_path / f"said{ending}", (Answer(cell, label=cell) for cell in cells))
    if ending == ".jsonl":
        inputs = [row["input"] for row in read_lines(tmp_path / "said.jsonl")]
    else:
        inputs = list(whole(tmp_path / f"said{ending}").columns["input"])
    quoted = [f"'{cell}" for cell in cells[:5]] if ending == ".csv" else cells[:5]
    assert inputs == [*quoted, *cells[5:]]


BAD = {
    "image": ("bad.png", b"\x89PNG not at all"),
    "text": ("bad.csv", b'sentence,topic\nrain and s\xc3\xbcn,x\n"",x\nab\xe9,x\none,two,three\nloan card,x\n'),
    "table": (
        "bad.csv",
        b"length,size,colour\n1,1.7e9,red\n,1.7e9,red\nnan,1.7e9,red\n1,abc,red\n1,2\n1e300,1.7e9,red\n"
        b"1,1.7e9,\n4,1.7e9,never seen\n",
    ),
}  # fmt: skip
EXPECTED: dict[str, list[str | None]] = {
    "image": ["not an image"],
    "text": [None, "empty text", "not UTF-8", "3 cells", None],
    "table": [None, None, None, "'size' is 'abc'", "2 cells", "too large", None, None],
}  # fmt: skip


def test_bad_rows_are_marked_counted_and_change_the_exit_code(case: Case, tmp_path: Path) -> None:
    name, content = BAD[case.kind]
    (tmp_path / name).write_bytes(content)
    result = CliRunner().invoke(
        app, ["predict", str(case.out), str(tmp_path / name), "-o", str(tmp_path / "o.jsonl")]
    )
    assert result.exit_code == 1, result.output
    rows = read_lines(tmp_path / "o.jsonl")
    for row, why in zip(rows, EXPECTED[case.kind], strict=True):
        assert (row["problem"] is None) == (why is None), row
        assert why is None or (why in row["problem"] and row["label"] is None)
    bad = sum(why is not None for why in EXPECTED[case.kind])
    assert f"{bad} could not be used" in result.output


@pytest.mark.parametrize("case", ["text"], indirect=True)
def test_text_comes_from_standard_input_and_plain_files(
    case: Case, model: Model, tmp_path: Path
) -> None:
    lines = "rain and sun\n\nmoney and loan\n"
    (tmp_path / "some.txt").write_text(lines)
    piped = CliRunner().invoke(app, ["predict", str(case.out), "-"], input=lines)
    assert piped.exit_code == 1
    cells = list(csv.reader(piped.stdout.splitlines(), delimiter="\t"))
    filed = list(answers(model, [str(tmp_path / "some.txt")]))
    assert [row[1] for row in cells[1:]] == [a.label or "" for a in filed]
    assert cells[2][-1] == "empty text"
    with pytest.raises(BadInput, match="piped"):
        list(answers(model, ["rain and sun"]))


def test_what_was_never_read_gets_no_high_p_from_our_default(tmp_path: Path) -> None:
    """A hundred sentences and a short training leave much of the space unvisited."""
    data = made_data.sentences(tmp_path / "topics.csv")
    fit(gather(Request(data=data, text="sentence", label="topic")), tmp_path / "model")
    model = load(tmp_path / "model")
    strange = ["purple elephants swim quietly", "what is the meaning of life", "zzz qqq"]
    never_read = made_data.write_csv(tmp_path / "s.csv", ["sentence"], [[s] for s in strange])
    unknown, known = (
        [there(a.confidence) for a in answers(model, [str(path)])] for path in (never_read, data)
    )
    assert max(unknown) < 0.2
    assert min(known) > 0.95
