"""Several processes and what can befall them: rows once each, deaths and full disks cost an epoch."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lightning_fabric import Fabric
from PIL import Image

from ova.cli.run import run_all
from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.predictions import read
from ova.training.engine import Machine
from ova.training.run_folder import CHECKPOINT
from ova.training.stages import Place, carry_out

CLASSES, PIXELS = 4, 72
SMALL = replace(EXPERIMENTS["toy"].recipes[0], formulation="ova-dm", epochs=3, steps=0)


def ova(*words, devices=2, data=None):
    """The command line of a run on CPU processes, started."""
    command = [sys.executable, "-m", "ova", "run", *words, "--seeds", "1", "--accelerator", "cpu"]
    command += ["--devices", str(devices), *(["--data-dir", str(data)] if data else [])]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=env, text=True, stdout=pipe, stderr=subprocess.STDOUT)


def finish(process, code=0):
    """Wait for the command and look at its exit code."""
    said, _ = process.communicate(timeout=280)
    assert process.returncode == code, said
    return said


def only_folder(out):
    (folder,) = (f for f in out.iterdir() if f.is_dir())
    return folder


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    """ImageNet in small: class folders of JPEG images, each class with a colour of its own."""
    root, draw = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    for split, count in (("train", 20), ("val", 7)):
        for k in range(CLASSES):
            folder = root / "imagenet" / split / f"n{k:08d}"
            folder.mkdir(parents=True)
            for i in range(count):
                noise = draw.integers(0, 80, (PIXELS, PIXELS + i, 3))
                noise[..., k % 3] += 60 * (1 + k // 3)
                Image.fromarray(noise.astype(np.uint8)).save(folder / f"{i}.JPEG")
    return root


@pytest.mark.slow
def test_two_processes_train_and_evaluate_imagenet_each_row_once(images, tmp_path):
    settings = ["data=imagenet-64", "model=wrn-10-1", "epochs=1", "batch_size=16", "shift=contrast"]
    words = [word for setting in settings for word in ("--set", setting)]
    finish(ova("imagenet", "--only", "ova-dm", *words, "--out", str(tmp_path), data=images))
    folder = only_folder(tmp_path / "imagenet")
    names = ["test", *(f"shift/contrast/{severity}" for severity in range(1, 6))]
    for name in names:
        said = read(folder / "predictions" / f"{name}.parquet")
        assert sorted(said.id) == list(range(7 * CLASSES)), name
        y = np.repeat(np.arange(CLASSES), 7)
        np.testing.assert_array_equal(said.target[np.argsort(said.id)], y)
    assert set(names) <= {row["dataset"] for row in read_lines(folder / "measurements.jsonl")}
    assert len(read_lines(folder / "log.jsonl")) == 1


def ps(*words):
    return subprocess.run(
        ["ps", *words], capture_output=True, text=True, check=False
    ).stdout.strip()


def children(process):
    return [int(pid) for pid in ps("-o", "pid=", "--ppid", str(process.pid)).split()]


def gone(pid):
    state = ps("-o", "stat=", "-p", str(pid))
    return not state or state.startswith("Z")


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["first", "second"])
def test_when_a_rank_dies_all_stop_and_the_next_run_goes_on(victim, tmp_path):
    words = ["toy", "--only", "ova-dm", "--set", "steps=0", "--set", "epochs=30"]
    process = ova(*words, "--out", str(tmp_path))
    wait_for(lambda: list(tmp_path.rglob(CHECKPOINT)))
    (second,) = [pid for pid in children(process) if not gone(pid)]
    os.kill(process.pid if victim == "first" else second, signal.SIGKILL)
    process.communicate(timeout=120)
    assert process.returncode != 0
    wait_for(lambda: gone(second))
    folder = only_folder(tmp_path / "toy")
    assert not (folder / "measurements.jsonl").exists()
    finish(ova(*words, "--out", str(tmp_path)))
    assert [row["epoch"] for row in read_lines(folder / "log.jsonl")] == list(range(1, 31))
    assert not list(folder.rglob("*.part"))


def carry(out):
    place = Place(out)
    for _ in carry_out(Fabric(accelerator="cpu", devices=1), SMALL, place, Machine()):
        pass
    return (place.folder(SMALL) / "measurements.jsonl").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("writes", [1, 2, 3])
def test_a_full_disk_costs_no_more_than_the_epoch_under_way(writes, tmp_path, monkeypatch, capsys):
    from ova.training import checkpoint

    write, count = Path.write_bytes, []

    def fills_up(path, content):
        count.append(path)
        if len(count) <= writes:
            return write(path, content)
        write(path, content[:100])  # what a full disk leaves
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", fills_up)  # as a checkpoint is written
        assert run_all([SMALL], Place(tmp_path / "cut"), Machine(accelerator="cpu")) == 1
    assert "No space left" in capsys.readouterr().out.replace("\n", "")
    folder = Place(tmp_path / "cut").folder(SMALL)
    assert checkpoint.facts(folder / CHECKPOINT)["epoch"] == str(writes)
    assert not list(folder.rglob("*.part"))
    assert carry(tmp_path / "cut") == carry(tmp_path / "whole")
