"""Runs on two hosts: the same measurements as on one, and a host that is lost costs an epoch."""

import os
import sys
import time
from pathlib import Path

import pytest

from hosts import PORT, below, torchrun, two_hosts
from ova.cli.run import run_all
from ova.experiments import EXPERIMENTS
from ova.files import read_lines
from ova.training.engine import Machine
from ova.training.recipe import override
from ova.training.run_folder import CHECKPOINT
from ova.training.stages import Place

TOY = ["toy", "--only", "ova-dm", "--set", "steps=0", "--set", "epochs=12"]
pytestmark = pytest.mark.slow

SLOW_DISK = """
import os, time
_replace = os.replace
def replace(*names, **more):
    time.sleep(0.2)
    return _replace(*names, **more)
os.replace = replace
"""


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The measurements of the same run by one process."""
    place = Place(tmp_path_factory.mktemp("alone"))
    (recipe,) = EXPERIMENTS["toy"].expand(["ova-dm"], 1, TOY[4::2])
    assert run_all([override(recipe, [])], place, Machine(accelerator="cpu")) == 0
    return measurements(place.out)


def measurements(out):
    (file,) = Path(out).rglob("measurements.jsonl")
    return read_lines(file)


def near(found, expected, within):
    """Every measurement of two runs is the same, numbers within what two orders of sums leave."""
    assert len(found) == len(expected) > 20
    for first, second in zip(found, expected, strict=True):
        assert first.keys() == second.keys()
        for key, value in first.items():
            close = key in ("value", "halves", "excess") and value is not None
            assert second[key] == (pytest.approx(value, abs=within) if close else value), first


def ended(process, code=0):
    said, _ = process.communicate(timeout=500)
    assert process.returncode == code, said
    return said


def wait_for(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_two_hosts_measure_what_one_does_though_one_comes_late_and_the_folder_is_slow(
    alone, tmp_path, monkeypatch
):
    (tmp_path / "slow").mkdir()
    (tmp_path / "slow" / "sitecustomize.py").write_text(SLOW_DISK)
    paths = [str(tmp_path / "slow"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    with two_hosts() as hosts:
        started = torchrun(hosts, *TOY, out=tmp_path / "out", late=lambda: time.sleep(5))
        for process in started:
            ended(process)
    near(measurements(tmp_path / "out"), alone, 1e-4)


@pytest.mark.timeout(600)  # three processes of a transformer on as few cores as there are
def test_two_hosts_measure_what_one_does_on_clinc(data_dir, tmp_path):
    # Without noise, of which every process draws its own.
    settings = ["epochs=1", "steps=8", "warmup=0", "batch_size=96", "shift=none"]
    settings += ["dropout=0", "augment=none"]
    words = ["clinc-desk", "--only", "ova", "--data-dir", str(data_dir)]
    words += [word for setting in settings for word in ("--set", setting)]
    with two_hosts() as hosts:
        for process in torchrun(hosts, *words, out=tmp_path / "two"):
            ended(process)
        one = [sys.executable, "-m", "ova", "run", *words, "--seeds", "1", "--accelerator", "cpu"]
        ended(hosts[0].start(*one, "--out", str(tmp_path / "one")))
    near(measurements(tmp_path / "two"), measurements(tmp_path / "one"), 1e-3)


def test_a_lost_host_ends_the_job_in_a_sentence_and_the_same_command_goes_on(alone, tmp_path):
    with two_hosts() as hosts:
        left, _ = torchrun(hosts, *TOY, out=tmp_path)
        wait_for(lambda: list(tmp_path.rglob(CHECKPOINT)))
        hosts[1].lose()
        said = ended(left, 1)
        assert "another process of this run is gone" in said
        assert not list(tmp_path.rglob("measurements.jsonl"))
        for process in torchrun(hosts, *TOY, out=tmp_path):
            ended(process)
    near(measurements(tmp_path), alone, 1e-4)


def test_torchrun_starts_a_killed_process_again_and_the_run_ends(alone, tmp_path):
    with two_hosts() as hosts:
        started = torchrun(hosts, *TOY, out=tmp_path, options=["--max-restarts", "2"])
        wait_for(lambda: list(tmp_path.rglob(CHECKPOINT)))
        (worker,) = below(started[1].pid)[:1]
        os.kill(worker, 9)
        for process in started:
            ended(process)
    near(measurements(tmp_path), alone, 1e-4)


def test_the_variables_of_slurm_say_who_is_who(alone, tmp_path):
    command = [sys.executable, "-m", "ova", "run", *TOY, "--seeds", "1", "--accelerator", "cpu"]
    command += ["--nodes", "2", "--devices", "1", "--out", str(tmp_path)]
    with two_hosts() as hosts:
        job = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "ova", "SLURM_NTASKS": "2"}
        job |= {"SLURM_NNODES": "2", "SLURM_NTASKS_PER_NODE": "1", "SLURM_LOCALID": "0"}
        job |= {"MASTER_ADDR": hosts[0].address, "MASTER_PORT": str(PORT)}
        started = [
            host.start(*command, **job, SLURM_PROCID=str(i), SLURM_NODEID=str(i))
            for i, host in enumerate(hosts)
        ]
        for process in started:
            ended(process)
    near(measurements(tmp_path), alone, 1e-4)
