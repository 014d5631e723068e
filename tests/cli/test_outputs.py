"""What commands write: never what is read or what another command owns, and an error of the machine is a sentence."""

import errno
import os
import shlex
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import made_data
import ova.files
from ova.cli.app import COMMANDS, main

OLD = Path(__file__).parents[1] / "modelfolder/version_0_1"  # a small model that is there already


def ova_says(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code of a command line, and what it prints as an error."""
    sys.argv, code = ["ova", *shlex.split(line)], 0
    try:
        main()
    except SystemExit as end:
        code = int(end.code or 0)
    return code, capsys.readouterr().err


def contents(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an input of every kind, as the working folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [])
    monkeypatch.delenv("OVA_DATA", raising=False)
    draw = np.random.default_rng(0)
    for name in ("t.csv", "v.csv", "o.csv"):
        rows = [f"{draw.uniform(0.5, 1)},{i % 2},{i // 2 % 2}" for i in range(300)]
        Path(name).write_text("\n".join(["confidence,prediction,target", *rows]))
    for name in ("t.npz", "v.npz", "o.npz"):
        np.savez(name, logits=draw.normal(size=(20, 3)), target=draw.integers(0, 3, 20))
    Path("o.csv").write_text("confidence,prediction\n0.6,1\n0.7,0\n")
    Image.fromarray(draw.integers(0, 256, (32, 32, 3), np.uint8)).save("a.png")
    shutil.copytree(OLD / "model", "m")
    rows = (OLD / "rows.csv").read_text().splitlines()[:9]  # later ones cannot be used
    Path("rows.csv").write_text("\n".join(rows))
    Path("link.csv").symlink_to("t.csv")
    Path("hard.csv").hardlink_to("t.csv")
    run = Path("runs/toy/r")
    (run / "predictions").mkdir(parents=True)
    shutil.copy("t.csv", run / "predictions/test.csv")
    for name, text in {
        "recipe.json": "{}",
        "measurements.jsonl": "",
        "manifest.json": "{}",
    }.items():
        (run / name).write_text(text)
    Path("runs/all").mkdir()
    for name in ("runs.jsonl", "measurements.jsonl", "curves.jsonl"):
        Path("runs/all", name).touch()
    return tmp_path


OVER = {
    "predict m rows.csv --out rows.csv": "which is read",
    "predict m ./rows.csv --out m/../rows.csv": "which is read",
    "evaluate t.csv --measurements t.csv": "which is read",
    "evaluate t.csv --output t.csv": "which is read",
    "evaluate t.csv --measurements link.csv": "which is read",
    "evaluate t.csv --measurements hard.csv": "which is read",
    "evaluate link.csv -o t.csv": "which is read",
    "evaluate t.csv --ood o.csv --measurements o.csv": "which is read",
    "evaluate t.csv --measurements x -o x": "the same file",
    "calibrate t.csv --fit v.csv --json t.csv": "which is read",
    "calibrate t.csv --fit v.csv --json v.csv": "which is read",
    "calibrate t.csv --fit v.csv --out t.csv": "which is read",
    "calibrate t.csv --fit v.csv --out x.csv --json x.csv": "the same file",
    "score t.npz v.npz --outside o.npz --json o.npz": "which is read",
    "monitor m t.csv --json t.csv": "which is read",
    "monitor m t.csv --state t.csv": "which is read",
    "monitor m v.csv t.csv --labels o.csv --json o.csv": "which is read",
    "monitor m t.csv --json x --state x": "the same file",
    "monitor m t.csv --out m/report.html": "model",
    "monitor m t.csv --out x.txt": "the page is HTML",
    "corrupt --preview a.png --out a.png": "which is read",
    "evaluate t.csv --measurements runs/toy/r/measurements.jsonl": "a file of the run",
    "evaluate t.csv --measurements runs/toy/r/curves.json": "a file of the run",
    "evaluate t.csv --measurements runs/toy/r/predictions/ood/x.parquet": "a file of the run",
    "evaluate t.csv --measurements runs/all/curves.jsonl": "a file of the run",
    "calibrate t.csv --fit v.csv --json m/model.json": "model",
    "calibrate t.csv --fit v.csv --json m/calibration.json": "model",
    "predict m rows.csv --out runs/toy/r/measurements.jsonl": "a file of the run",
    "export m --onnx m/weights.safetensors": "model",
    "report runs/toy/r -o runs/toy/r/recipe.json": "a file of the run",
    "evaluate t.csv --measurements m": "is a folder",
    "evaluate t.csv -o runs": "is a folder",
    "evaluate t.csv --measurements t.csv/x.jsonl": "is not a folder",
    "evaluate t.csv --measurements /dev/null": "a device",
    "calibrate t.csv --fit v.csv --json t.csv/x/y.json": "is not a folder",
    "predict m rows.csv --out t.csv/x.csv": "is not a folder",
    "corrupt --preview a.png --out t.csv/x.png": "is not a folder",
    "corrupt m --out t.csv": "is a file",
    "corrupt m --out m/c": "is inside",
    "report runs/toy/r -o t.csv/x.html": "is not a folder",
    "report runs/toy/r --figures t.csv": "is a file",
    "run toy --out t.csv": "is a file",
    "run toy --out t.csv/x": "is not a folder",
    "tune clinc-desk --out t.csv/x": "is not a folder",
    "ensemble runs/toy/r runs/toy/q --out t.csv": "is a file",
    "ensemble runs/toy/r runs/toy/q --out runs/toy/r/x": "is inside",
    "ensemble runs/toy/r runs/toy/q --out x": "no complete run",
    "train t.csv --label target --out t.csv": "is a file",
    "train t.csv --label target --out t.csv/x": "is not a folder",
    "train m --out m": "is inside",
    "train m --out m/model": "is inside",
    "promise m rows.csv --out m": "is inside",
    "promise m rows.csv --out m/x": "is inside",
    "promise m rows.csv --out t.csv": "is a file",
    "promise m rows.csv --out runs": "is not empty",
    "review m rows.csv --out m": "is inside",
    "review m rows.csv --out t.csv": "is a file",
    "extend m t.csv --data t.csv --out m": "is inside",
    "extend m t.csv --data t.csv --out runs": "is not empty",
    "serve m --log t.csv": "no log of `ova serve`",
    "serve m --log m/model.json": "model",
    "serve m --log runs": "is a folder",
    "predict m rows.csv --threshold nan": "from 0 to 1",
    "predict m rows.csv --threshold 80": "from 0 to 1",
    "run toy --only ova --accelerator cuda": "cannot be had here",
    "train t.csv --label target --accelerator mps": "cannot be had here",
    "tune clinc-desk --accelerator xyz": "cannot be had here",
}  # fmt: skip


@pytest.mark.parametrize("line", OVER)
def test_what_must_not_be_written_is_refused_before_any_work(line, here, capsys):
    if "cuda" in line and torch.cuda.is_available():
        pytest.skip("this machine has one")
    before = contents(here)
    code, said = ova_says(line, capsys)
    assert code == 2, said
    assert OVER[line] in said
    assert said.startswith("error: ")
    assert contents(here) == before


def test_nothing_is_written_that_nobody_asked_for(here, capsys):
    before = contents(here)
    for line in ("evaluate t.csv", "calibrate t.csv --fit v.csv", "predict m rows.csv"):
        assert ova_says(line, capsys)[0] == 0
    os.chdir("runs/toy/r")
    assert ova_says("evaluate predictions/test.csv", capsys)[0] == 0
    assert contents(here) == before


def test_outputs_of_before_may_be_written_again(here, capsys):
    for line in (
        "evaluate t.csv --measurements measurements.jsonl",
        "evaluate t.csv -o page.html",
        "calibrate t.csv --fit v.csv --out c.csv --json c.json",
        "predict m rows.csv --out answers.csv",
    ):
        assert [ova_says(line, capsys)[0] for _ in "ab"] == [0, 0], line


WRITE = (
    "evaluate t.csv --measurements x.jsonl",
    "evaluate t.csv -o x.html",
    "calibrate t.csv --fit v.csv --out x.csv",
    "calibrate t.csv --fit v.csv --json x.json",
    "predict m rows.csv --out x.csv",
    "predict m rows.csv --out x.parquet",
    "score t.npz v.npz --outside o.npz --bootstrap 0 --json x.json",
    "corrupt --preview a.png --out x.png",
    "report runs/toy/r -o x.html",
    "train t.csv --label target --set epochs=1",
)  # `ova run` says it run by run and ends with 1; `ova tune` is slow to begin


@pytest.mark.parametrize("line", WRITE)
def test_a_full_disk_is_a_sentence_that_names_the_file(line, here, capsys, monkeypatch):
    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    before = contents(here)
    monkeypatch.setattr(ova.files, "held", full)
    code, said = ova_says(line, capsys)
    assert code == 2, said
    assert "No space left on device; make room" in said
    assert contents(here) == before


def test_a_full_disk_is_a_sentence_of_each_run(here, capsys, monkeypatch):
    def full(path, *_):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr("ova.training.stages.write_json", full)
    sys.argv = shlex.split("ova run toy --only ova --seeds 1 --set epochs=1 --out full")
    with pytest.raises(SystemExit) as end:
        main()
    said = " ".join(capsys.readouterr().out.split())
    assert end.value.code == 1
    assert "No space left on device; make room, then the same command goes on" in said
    assert not list(Path("full").rglob("failure.txt"))  # no mistake of ours


def test_a_pipe_among_images_is_named_and_not_waited_for(here, capsys):
    made_data.pictures(here / "colours")
    os.mkfifo("colours/red/pipe.png")
    for line in (
        "train colours --set epochs=1 --out model --skip-bad",
        "predict model colours",
        "corrupt colours --out c --types contrast --severities 1",
    ):
        code, said = ova_says(line, capsys)
        assert code == line.startswith("predict"), said  # it marks the row


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 7.45 GiB for an array"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes"),
    ],
)
def test_too_little_memory_is_a_sentence(error, capsys, monkeypatch):
    def hungry(*_, **__):
        raise error

    monkeypatch.setattr("ova.metrics.model_files.evaluate_files", hungry)
    assert ova_says("evaluate t.csv", capsys)[0] == 2
    monkeypatch.setattr("ova.metrics.model_files.evaluate_files", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):  # a mistake of ours stays one
        ova_says("evaluate t.csv", capsys)


def test_every_command_that_writes_is_tried():
    tried = {line.split()[0] for line in (*OVER, *WRITE)}
    assert tried == set(COMMANDS) - {"list", "data", "push"}


NOT_UTF8 = os.fsdecode(b"caf\xe9")
NAMES = ["x[/b]", "a[b]", "[red]x", ":smile:", "a\u2028b", "a\x85b", NOT_UTF8, "a\nb"]
QUICK = (
    "x[/b]",
    "[red]x",
    "a\u2028b",
)  # two that a console and one that a reader could stumble over


def names(*without: str) -> list:
    """The names as parameters; those that are like a quick one are left to `make test`."""
    return [
        pytest.param(name, marks=() if name in QUICK else pytest.mark.slow)
        for name in NAMES
        if name not in without
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", names(NOT_UTF8))
def test_any_name_is_fine(name, here, capsys):
    Path(name).parent.mkdir(exist_ok=True)
    shutil.copy("t.csv", f"{name}.csv")
    quoted = shlex.quote(name)
    for line in (
        f"evaluate {quoted}.csv -o {quoted}.html --measurements {quoted}.jsonl",
        f"calibrate {quoted}.csv --fit v.csv --out {quoted}-2.csv --json {quoted}.json",
        f"train {quoted}.csv --label target --set epochs=1 --out {quoted}",
        f"predict {quoted} {quoted}.csv --out {quoted}-3.csv",
        f"report {quoted}/run -o {quoted}-2.html",
        f"run toy --only ova --seeds 1 --set epochs=1 --set steps=9 --out {quoted}-runs",
    ):
        code, said = ova_says(line, capsys)
        assert code == 0, (line, said)


@pytest.mark.parametrize(
    "line",
    [
        "evaluate caf\udce9.csv",
        "evaluate t.csv --measurements caf\udce9.jsonl",
        "calibrate t.csv --fit v.csv --out caf\udce9.parquet",
        "predict m rows.csv --out caf\udce9.parquet",
        "run toy --out caf\udce9",
        "train t.csv --label target --out caf\udce9",
        "tune clinc-desk --out caf\udce9",
        "corrupt colours --out caf\udce9",
        "report runs/toy/r --figures caf\udce9",
    ],
)
def test_files_that_arrow_could_not_open_are_refused_before_any_work(line, here, capsys):
    shutil.copy("t.csv", f"{NOT_UTF8}.csv")
    before = contents(here)
    code, said = ova_says(line, capsys)
    assert (code, "UTF-8" in said) == (2, True), said
    assert contents(here) == before


@pytest.mark.slow
@pytest.mark.parametrize("name", names("x[/b]"))
def test_classes_and_images_of_any_name_are_fine(name, here, capsys):
    made_data.pictures(here / "colours")
    shutil.move("colours/red", f"colours/{name}")
    (image,) = list(Path("colours", name).iterdir())[:1]
    image.rename(image.with_stem(name))
    for line in (
        "train colours --set epochs=1 --out model",
        "predict model colours --out x.csv",
        "predict model colours",
        "corrupt colours --out c --types contrast --severities 1",
        "corrupt colours --out c --types contrast --severities 1",
    ):
        code, said = ova_says(line, capsys)
        assert code == 0, (line, said)
    sums = "c/contrast/1"
    checked = os.waitstatus_to_exitcode(os.system(f"cd {sums} && sha256sum --quiet -c SHA256SUMS"))
    assert checked == 0
